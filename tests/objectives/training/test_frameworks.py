"""The lines of known frameworks are read as docs/training.md says; its table has a row for each."""

import re
from pathlib import Path

import pytest

from objectives.training.progress import make_reader

PAGE = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")

YOLO = """\
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
\r        1/2      2.31G      1.402      2.117      1.238         34        640:  50%|█████     | 4/8 [00:01<00:01]\
\r        1/2      2.31G      1.311      2.017      1.201         19        640: 100%|██████████| 8/8 [00:02<00:00]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 2/2 [00:00]
                   all         64        412      0.611      0.502      0.548      0.391

      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        2/2      2.35G      1.211      1.817      1.101         22        640: 100%|██████████| 8/8 [00:02<00:00]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 2/2 [00:00]
                   all         64        412      0.651      0.532      0.598      0.431

2 epochs completed in 0.002 hours.
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 2/2 [00:00]
                   all         64        412      0.111      0.111      0.111      0.111
"""

# The name in the docs, lines, the metric, and its values by step. The first line is the one in the docs.
FRAMEWORKS = {
    "PyTorch, MNIST example": (
        (
            "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.301\n"
            "Train Epoch: 1 [59520/60000 (99%)]\tLoss: 0.131\n"
            "\n"
            "Test set: Average loss: 0.0512, Accuracy: 9831/10000 (98%)\n"
            "\n"
            "Train Epoch: 2 [640/60000 (1%)]\tLoss: 0.2\n"
            "Test set: Average loss: 0.0400, Accuracy: 9870/10000 (99%)\n"
        ),
        "Accuracy",
        {1: 0.9831, 2: 0.987},
    ),
    "PyTorch, ImageNet example": (
        (
            "Epoch: [0][  10/5005]\tTime  0.301 ( 0.402)\tLoss 6.91e+00 (6.93e+00)\tAcc@1   0.39 (  0.21)\n"
            "Test: [ 10/196]\tTime  0.100 ( 0.201)\tLoss 5.11e+00 (5.23e+00)\tAcc@1  10.55 ( 11.21)\n"
            " *   Acc@1 11.350 Acc@5 28.401\n"
            "Epoch: [1][  10/5005]\tTime  0.301 ( 0.402)\tLoss 4.91e+00 (4.93e+00)\tAcc@1  15.00 ( 14.21)\n"
            " *   Acc@1 21.350 Acc@5 41.401\n"
        ),
        "Acc@1",
        {0: 11.35, 1: 21.35},
    ),
    "PyTorch, transfer learning": (
        (
            "Epoch 0/24\n----------\ntrain Loss: 0.6102 Acc: 0.6721\nval Loss: 0.2911 Acc: 0.8824\n"
            "Epoch 1/24\n----------\ntrain Loss: 0.4102 Acc: 0.8121\nval Loss: 0.2511 Acc: 0.9124\n"
        ),
        "val_Loss",
        {0: 0.2911, 1: 0.2511},
    ),
    "Keras, `verbose=1`": (
        (
            "Epoch 1/10\n313/313 ━━━━━━━━━━━━━━━━━━━━ 1s 2ms/step - accuracy: 0.88 - loss: 0.42 - val_loss: 0.31\n"
            "Epoch 2/10\n313/313 ━━━━━━━━━━━━━━━━━━━━ 1s 2ms/step - accuracy: 0.91 - loss: 0.33 - val_loss: 0.28\n"
        ),
        "val_loss",
        {1: 0.31, 2: 0.28},
    ),
    "Keras, `verbose=2`": (
        (
            "Epoch 1/10\n313/313 - 2s - 6ms/step - accuracy: 0.88 - loss: 0.42 - val_loss: 0.31\n"
            "Epoch 2/10\n313/313 - 1s - 4ms/step - accuracy: 0.91 - loss: 0.33 - val_loss: 0.28\n"
        ),
        "val_loss",
        {1: 0.31, 2: 0.28},
    ),
    "Lightning": (
        (
            "Epoch 0: 100%|██████████| 25/25 [00:01<00:00, 20.1it/s, v_num=3, train_loss=0.690]\n"
            "Epoch 1: 100%|██████████| 25/25 [00:01<00:00, 20.1it/s, v_num=3, train_loss=0.510]\n"
        ),
        "train_loss",
        {1: 0.69, 2: 0.51},
    ),
    "tqdm": (
        (
            "\rEpoch 1:  40%|████      | 40/100 [00:01<00:02, 25.0it/s, loss=3.9]"
            "\rEpoch 1: 100%|██████████| 100/100 [00:04<00:00, 25.0it/s, loss=3.7]\n"
            "\rEpoch 2: 100%|██████████| 100/100 [00:04<00:00, 25.0it/s, loss=3.4]\n"
        ),
        "loss",
        {1: 3.7, 2: 3.4},
    ),
    "tqdm, with the number of epochs": (
        (
            "Epoch 1/10: 100%|██████████| 100/100 [00:04<00:00, 25.0it/s, loss=3.7]\n"
            "Validation: 100%|██████████| 10/10 [00:01<00:00, 25.0it/s, val_loss=3.1]\n"
            "Epoch 2/10: 100%|██████████| 100/100 [00:04<00:00, 25.0it/s, loss=3.4]\n"
            "Validation: 100%|██████████| 10/10 [00:01<00:00, 25.0it/s, val_loss=2.9]\n"
        ),
        "val_loss",
        {1: 3.1, 2: 2.9},
    ),
    "Hugging Face Trainer": (
        (
            "{'loss': 0.652, 'grad_norm': 2.1, 'learning_rate': 4.8e-05, 'epoch': 0.32}\n"
            "{'eval_loss': 0.481, 'eval_accuracy': 0.801, 'eval_runtime': 3.2, 'epoch': 1.0}\n"
            "{'loss': 0.412, 'grad_norm': 1.9, 'learning_rate': 3.1e-05, 'epoch': 1.32}\n"
            "{'eval_loss': '0.442', 'eval_accuracy': '0.831', 'eval_runtime': '3.1', 'epoch': '1.99'}\n"
            "{'train_runtime': 61.2, 'train_samples_per_second': 91.1, 'train_loss': 0.51, 'epoch': 2.0}\n"
        ),
        "eval_loss",
        {1: 0.481, 2: 0.442},
    ),
    "fastai": (
        (
            "epoch     train_loss  valid_loss  accuracy  time    \n"
            "0         0.512301    0.401230    0.843210  00:10     \n"
            "1         0.402301    0.351230    0.873210  00:10     \n"
        ),
        "valid_loss",
        {1: 0.40123, 2: 0.35123},
    ),
    "timm": (
        (
            "Train: 0 [  50/1251 (  4%)]  Loss: 6.91 (6.93)  Time: 0.301s, 850.2/s  LR: 1.000e-06  Data: 0.010\n"
            "Test: [   0/48]  Time: 1.101 (1.101)  Loss:   6.51 (  6.51)  Acc@1:   1.1 (  1.1)  Acc@5:   5.2 (  5.2)\n"
            "Test: [  48/48]  Time: 0.101 (0.201)  Loss:   6.31 (  6.41)  Acc@1:   2.3 (  2.1)  Acc@5:   7.2 (  7.0)\n"
            "Train: 1 [   0/1251 (  0%)]  Loss: 6.51 (6.51)  Time: 0.301s, 850.2/s  LR: 1.000e-05  Data: 0.010\n"
            "Test: [  48/48]  Time: 0.101 (0.201)  Loss:   5.31 (  5.41)  Acc@1:  12.3 ( 12.1)  Acc@5:  27.2 (27.0)\n"
        ),
        "Acc@1",
        {0: 2.1, 1: 12.1},
    ),
    "Ultralytics YOLO": (YOLO, "mAP50-95", {1: 0.391, 2: 0.431}),
    "MMEngine, mmdetection": (
        (
            "03/04 10:11:12 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 1.9e-03  eta: 2:01:02  loss: 4.21\n"
            "03/04 10:51:12 - mmengine - INFO - Epoch(val) [1][625/625]  coco/bbox_mAP: 0.171  coco/bbox_mAP_50: 0.3\n"
            "2024-03-04 11:11:12,345 - mmdet - INFO - Epoch [2][50/7330]\tlr: 2.0e-02, eta: 1:01:02, loss: 1.21\n"
            "2024-03-04 11:51:12,345 - mmdet - INFO - Epoch(val) [2][5000]\tcoco/bbox_mAP: 0.201\n"
        ),
        "coco/bbox_mAP",
        {1: 0.171, 2: 0.201},
    ),
    "Megatron-LM": (
        (
            " [2024-03-04 10:11:12] iteration      100/     500 | consumed samples:        25600 | "
            "elapsed time per iteration (ms): 152.3 | learning rate: 1.0E-04 | lm loss: 6.912E+00 |\n"
            " [2024-03-04 10:12:12] iteration      200/     500 | consumed samples:      51200 | lm loss: 6.112E+00 |\n"
        ),
        "lm_loss",
        {100: 6.912, 200: 6.112},
    ),
    "Megatron-LM, validation": (
        " validation loss at iteration 100 | lm loss value: 6.812E+00 | lm loss PPL: 9.087E+02 | \n",
        "lm_loss_value",
        {100: 6.812},
    ),
    "DeepSpeed": (
        (
            "steps: 10 loss: 2.3456 iter time (s): 0.123 samples/sec: 65.012\n"
            "[2024-03-04 10:11:12,345] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, loss=2.1\n"
        ),
        "loss",
        {10: 2.3456, 20: 2.1},
    ),
    "nanoGPT": (
        (
            "step 250: train loss 3.1234, val loss 3.2345\n"
            "iter 250: loss 3.1101, time 20.12ms, mfu 11.21%\n"
            "iter 260: loss 3.1001, time 20.12ms, mfu 11.21%\n"
            "step 500: train loss 2.9234, val loss 3.0345\n"
        ),
        "val_loss",
        {250: 3.2345, 500: 3.0345},
    ),
    "torchtitan": (
        (
            "[rank0]:[titan] 2024-03-04 10:11:12,345 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.1234  "
            "\x1b[33mmemory: 12.34GiB(15.1%)  \x1b[34mtps: 5,123  \x1b[35mmfu: 30.21%\x1b[39m\n"
        ),
        "loss",
        {10: 7.1234},
    ),
}


FRAMEWORKS |= {
    "PyTorch, quickstart": (
        (
            "Epoch 1\n-------------------------------\nloss: 2.303494  [   64/60000]\nloss: 2.1  [57664/60000]\n"
            "Test Error: \n Accuracy: 50.9%, Avg loss: 2.153452 \n\nEpoch 2\n-------------------------------\n"
            "loss: 2.1  [   64/60000]\nTest Error: \n Accuracy: 59.1%, Avg loss: 1.85 \n\n"
        ),
        "Avg_loss",
        {1: 2.153452, 2: 1.85},
    ),
    "PyTorch, language model example": (
        (
            "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 4.1 | loss  5.51 | ppl   247\n"
            "| end of epoch   1 | time: 12.31s | valid loss  5.82 | valid ppl   337.21\n"
            "| end of epoch   2 | time: 12.31s | valid loss  5.42 | valid ppl   227.21\n"
        ),
        "valid_loss",
        {1: 5.82, 2: 5.42},
    ),
    "JAX, MNIST example": (
        (
            "Epoch 0 in 1.23 sec\nTraining set accuracy 0.871\nTest set accuracy 0.879\n"
            "Epoch 1 in 1.01 sec\nTraining set accuracy 0.9\nTest set accuracy 0.91\n"
        ),
        "Test_set_accuracy",
        {0: 0.879, 1: 0.91},
    ),
    "Flax, MNIST example": (
        "I0304 10:11:12.123456 140123 train.py:171] epoch:  1, train_loss: 0.2451, test_loss: 0.0801\n",
        "test_loss",
        {1: 0.0801},
    ),
    "CLU, as Flax's ImageNet example": (
        "I0304 10:11:12.123456 140123 logging_writer.py:48] [100] accuracy=0.1, loss=5.2, steps_per_second=3.1\n",
        "loss",
        {100: 5.2},
    ),
    "Hugging Face Accelerate": (
        "epoch 0: {'accuracy': 0.8161, 'f1': 0.872}\nepoch 1: {'accuracy': 0.841, 'f1': 0.89}\n",
        "accuracy",
        {0: 0.8161, 1: 0.841},
    ),
    "fairseq": (
        (
            '2024-03-04 10:11:12 | INFO | train_inner | {"epoch": 1, "update": 0.2, "loss": "12.1"}\n'
            '2024-03-04 10:11:12 | INFO | valid | {"epoch": 1, "valid_loss": "9.12", "valid_ppl": "389"}\n'
        ),
        "valid_loss",
        {1: 9.12},
    ),
    "detectron2": (
        "[03/04 10:11:12 d2.utils.events]:  eta: 0:10:12  iter: 19  total_loss: 2.1  time: 0.4  max_mem: 3000M\n",
        "total_loss",
        {19: 2.1},
    ),
    "TensorFlow's estimators": (
        "INFO:tensorflow:loss = 2.3012, step = 0\nINFO:tensorflow:loss = 0.41, step = 100 (0.831 sec)\n",
        "loss",
        {0: 2.3012, 100: 0.41},
    ),
    "Ignite": (
        (
            "Training Results - Epoch: 1  Avg accuracy: 0.91 Avg loss: 0.31\n"
            "Validation Results - Epoch: 1  Avg accuracy: 0.92 Avg loss: 0.29\n"
        ),
        "Avg_loss",
        {1: 0.29},
    ),
    "Composer": (
        (
            "train          Epoch   1:  100%|██████████| 469/469 [00:05<00:00, 84.1ba/s, loss/train/total=0.1131]\n"
            "eval           Epoch   1:  100%|██████████| 79/79 [00:00<00:00, 130ba/s, metrics/eval/Accuracy=0.97]\n"
        ),
        "metrics/eval/Accuracy",
        {1: 0.97},
    ),
    "XGBoost": (
        "[0]\ttrain-logloss:0.61\tvalid-logloss:0.63\n[10]\ttrain-logloss:0.21\tvalid-logloss:0.30\n",
        "valid-logloss",
        {0: 0.63, 10: 0.30},
    ),
    "LightGBM": (
        "[10]\ttraining's l2: 0.31\tvalid_1's l2: 0.42\n[20]\ttraining's l2: 0.21\tvalid_1's l2: 0.32\n",
        "valid_1's_l2",
        {10: 0.42, 20: 0.32},
    ),
    "CatBoost": (
        "0:\tlearn: 0.6812\ttest: 0.6831\ttotal: 52.1ms\tremaining: 5.2s\n10:\tlearn: 0.5\ttest: 0.52\ttotal: 152ms\n",
        "test",
        {0: 0.6831, 10: 0.52},
    ),
    "scikit-learn, gradient boosting": (
        (
            "      Iter       Train Loss   Remaining Time \n"
            "         1           1.2812            1.20s\n"
            "         2           1.2012            1.10s\n"
        ),
        "Train_Loss",
        {1: 1.2812, 2: 1.2012},
    ),
    "scikit-learn, neural networks": (
        "Iteration 1, loss = 2.30121231\nValidation score: 0.812000\nIteration 2, loss = 1.9\nValidation score: 0.83\n",
        "Validation_score",
        {1: 0.812, 2: 0.83},
    ),
}


def read_all(text: str, metric: str | None = None) -> list:
    reader = make_reader("auto", metric)
    return [progress for line in text.split("\n") if (progress := reader(line)) is not None]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_lines_of_a_framework_are_read(name):
    text, metric, values = FRAMEWORKS[name]
    found = {step.step: step.metrics[metric] for step in read_all(text, metric) if metric in step.metrics}
    assert found == pytest.approx(values)


def test_the_page_has_a_row_for_each_framework():
    table = PAGE.partition("| program | what is read |\n|---|---|\n")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| (.+?) \| ", table, re.MULTILINE)) == sorted(FRAMEWORKS)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch [1][50/7330] lr: 2e-3, loss: 4.2",
        "Epoch: [0][10/5005] Loss: 6.9",
        "Epoch: 1 [640/60000 (1%)] Loss: 2.3",
        "Epoch 3 (12/938) loss: 0.5",
        "Epoch 3, 12/938, loss: 0.5",
        "Epoch 3 [45%] loss: 0.5",
        "Epoch 3/10 | Batch 20/100 | loss: 0.5",
        "Epoch: 3 | iter: 20/100 | loss: 0.5",
        "[Epoch 3/10] [Batch 20/100] [loss: 0.5]",
        "Epoch [3/10], Step [20/100], Loss: 0.5",
        "epoch 3.5 loss: 0.5",
        "| epoch 003:     50 / 1000 loss=5.1, ppl=34.2",
        "{'loss': 0.5, 'epoch': 0.32}",
        '{"loss": 0.5, "epoch": 0.32}',
        "Train Epoch: 3 20/100 loss: 0.5",
        "Epoch 3:  45%|████      | 45/100 [00:01<00:02, 25.0it/s, loss=0.5]",
        "Test: [ 10/196] Loss 5.1 (5.2)",
        "[3] loss: 0.5",
        "3: loss: 0.5",
        'Configuration: {"loss": 0.5, "epoch": 3}',
        "Best loss: 0.5, epoch: 3",
        "loss: 0.5, epoch: 3, batch: 20",
    ],
)
def test_a_line_about_a_part_of_an_epoch_is_no_step(line):
    assert read_all(f"epoch 2 loss: 0.9\n{line}") == read_all("epoch 2 loss: 0.9")
    assert read_all(line) == []


@pytest.mark.parametrize(
    ("line", "step", "value"),
    [
        ("Epoch 3, 938/938, loss: 0.5", 3, 0.5),
        ("Epoch 3 [100%] loss: 0.5", 3, 0.5),
        ("Epoch [3/10], Step [100/100], loss: 0.5", 3, 0.5),
        ("Epoch 3 of 10: loss 0.5", 3, 0.5),
        (" 33%|███▎      | 500/1500 [01:02<02:05,  7.98it/s]{'loss': 0.5, 'epoch': 3.0}", 3, 0.5),
        ("Step\tTraining Loss\tloss\n3\t0.7\t0.5", 3, 0.5),
        ("[2024-03-04 10:11:12] [INFO] [train.py:41] Epoch 3 loss: 0.5", 3, 0.5),
        ("Epoch 3 loss: 0.7 (0.5)", 3, 0.5),
        ("{'loss': 0.5, 'epoch': 2.98}", 3, 0.5),
        ("{'loss': np.float64(0.5), 'epoch': 3}", 3, 0.5),
        ("Training Epoch 3, loss 0.5: 100%|██████████| 100/100 [00:01<00:00, 25.0it/s]", 3, 0.5),
        ("Epoch 0: 100%|██████████| 100/100 [00:01<00:00, 25.0it/s, loss=0.5]", 1, 0.5),
    ],
)
def test_a_line_about_the_end_of_an_epoch_is_its_step(line, step, value):
    (found,) = read_all(line)
    assert (found.step, found.metrics["loss"]) == (step, value)


def test_results_without_an_epoch_are_not_read_before_one_is_known():
    assert read_all("Test set: Average loss: 0.05\nval Loss: 0.3\n * Acc@1 75.1") == []


def test_the_form_is_that_of_the_first_line_with_the_metric():
    text = (
        "Epoch 1: 100%|██████████| 100/100 [00:01<00:00, 25.0it/s, loss=0.5]\nepoch 1 val_loss: 0.4\n"
        "Epoch 2: 100%|██████████| 100/100 [00:01<00:00, 25.0it/s, loss=0.3]\nepoch 2 val_loss: 0.2\n"
    )
    assert {p.step: p.metrics["val_loss"] for p in read_all(text, "val_loss") if "val_loss" in p.metrics} == {
        1: 0.4,
        2: 0.2,
    }
    assert [p.metrics for p in read_all(text, "loss")] == [{"loss": 0.5}, {"loss": 0.3}]
