"""Writes a tiny random Qwen3, with the tokenizer of the recordings: run by the interpreter that has vLLM.

    python make_model.py TOKENIZER.json TEMPLATE.jinja FOLDER

Two layers, 64 wide, weights by a fixed seed: 0.5 MB. It speaks noise, unless a request forces its text.
"""

import sys
from pathlib import Path

import torch  # type: ignore[import-not-found]
from transformers import (  # type: ignore[import-not-found]
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 2009
END_OF_TURN = 2002
END_OF_TEXT = 2000


def main(tokenizer: Path, template: Path, folder: Path) -> None:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=131072,
        eos_token_id=END_OF_TURN,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    defaults = model.generation_config
    defaults.eos_token_id = [END_OF_TURN, END_OF_TEXT]
    # Qwen3's own.
    defaults.do_sample, defaults.temperature, defaults.top_p, defaults.top_k = True, 0.6, 0.95, 20
    model.save_pretrained(folder)
    words = PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    words.chat_template = template.read_text(encoding="utf-8")
    words.save_pretrained(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
