/* Answers as NVIDIA's library does for two cards: the second has no counter of energy. FAKE_NVML makes it hang or crash.

   Build: cc -shared -fPIC -o libnvidia-ml.so.1 nvml.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { int number; } card;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static card cards[] = {{0}, {1}};
static int asked;

int nvmlInit_v2(void) {
  const char *fault = getenv("UCX_FAKE_NVML");
  if (fault && !strcmp(fault, "hangs")) for (;;) pause();
  if (fault && !strcmp(fault, "crashes")) abort();
  if (fault && !strcmp(fault, "no driver")) return 9;
  return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) { return *count = 2, SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned number, card **found) {
  return number < 2 ? (*found = &cards[number], SUCCESS) : NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, card **found) {
  return strcmp(uuid, "MIG-7") ? NOT_FOUND : (*found = &cards[1], SUCCESS);
}

int nvmlDeviceGetUUID(card *one, char *uuid, unsigned length) {
  return snprintf(uuid, length, "GPU-%d1111111-2222", one->number + 1), SUCCESS;
}

int nvmlDeviceGetUtilizationRates(card *one, utilization *now) {
  return now->gpu = one->number ? 100 : 40, now->memory = 5, SUCCESS;
}

int nvmlDeviceGetMemoryInfo(card *one, memory *now) {
  return now->total = 16ull << 30, now->used = (3ull + one->number) << 30, now->free = now->total - now->used, SUCCESS;
}

int nvmlDeviceGetPowerUsage(card *one, unsigned *milliwatts) { return *milliwatts = 250000, SUCCESS; }

int nvmlDeviceGetTotalEnergyConsumption(card *one, unsigned long long *millijoules) {
  if (one->number) return NOT_SUPPORTED;
  return *millijoules = 9000000000000ull + (asked++ ? 12500 : 0), SUCCESS;
}
