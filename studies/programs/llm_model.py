"""Write a GGUF file of a language model with random weights, for measuring servers without a download.

The shape is that of a small Llama: grouped-query attention, gated feed-forward layers, separate embedding and output
matrices. The same options and seed give the same bytes.
"""

import argparse

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]
FIRST_WORD = len(SPECIAL) + len(BYTES)  # lower tokens are not words


def vocabulary(size: int) -> tuple[list[str], list[TokenType]]:
    """Return the tokens of a vocabulary and their types: special ones, all bytes, then words of five letters."""
    words = [f"\u2581w{number:04x}" for number in range(size - FIRST_WORD)]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
    types += [TokenType.BYTE] * len(BYTES) + [TokenType.NORMAL] * len(words)
    return [*SPECIAL, *BYTES, *words], types


def add_weights(writer: GGUFWriter, shape: argparse.Namespace) -> None:
    """Add normally distributed matrices, scaled to keep the size of activations, in 8 bits a weight."""
    drawn = np.random.default_rng(shape.seed)
    width, kv_width = shape.heads * shape.head_size, shape.kv_heads * shape.head_size

    def add_matrix(name: str, rows: int, columns: int, *, unused_rows: int = 0) -> None:
        matrix = drawn.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns, dtype=np.float32)
        matrix[:unused_rows] = 0
        kind = GGMLQuantizationType.Q8_0
        writer.add_tensor(f"{name}.weight", quantize(matrix, kind), raw_dtype=kind)

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(width, dtype=np.float32))

    add_matrix("token_embd", shape.vocabulary, width)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm")
        for name, rows, columns in (
            ("attn_q", width, width),
            ("attn_k", kv_width, width),
            ("attn_v", kv_width, width),
            ("attn_output", width, width),
            ("ffn_gate", shape.inner, width),
            ("ffn_up", shape.inner, width),
            ("ffn_down", width, shape.inner),
        ):
            add_matrix(f"{block}.{name}", rows, columns)
        add_norm(f"{block}.ffn_norm")
    add_norm("output_norm")
    # A byte that is no whole character would be held back by a server: only words are generated.
    add_matrix("output", shape.vocabulary, width, unused_rows=FIRST_WORD)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="the GGUF file to write")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--heads", type=int, default=6, help="attention heads")
    parser.add_argument("--kv-heads", type=int, default=2, help="heads of keys and values")
    parser.add_argument("--head-size", type=int, default=64, help="a multiple of 32")
    parser.add_argument("--inner", type=int, default=1024, help="width of the feed-forward layers, a multiple of 32")
    parser.add_argument("--vocabulary", type=int, default=8192, help="number of tokens")
    parser.add_argument("--context", type=int, default=8192, help="longest sequence")
    parser.add_argument("--seed", type=int, default=0)
    shape = parser.parse_args()
    writer = GGUFWriter(shape.file, "llama")
    writer.add_name("random weights")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.heads * shape.head_size)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_vocab_size(shape.vocabulary)
    tokens, types = vocabulary(shape.vocabulary)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(SPECIAL.index("<s>"))
    writer.add_eos_token_id(SPECIAL.index("</s>"))
    add_weights(writer, shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
