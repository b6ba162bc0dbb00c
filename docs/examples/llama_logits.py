"""Writes the logits that llama.cpp gives for a GGUF file, in tpc's golden format.

    pip install llama-cpp-python numpy
    python docs/examples/llama_logits.py model.gguf model.logits

Weights are used as the file has them, so that those of f32 give the exact answer; caches are f32.
"""

import ctypes
import struct
import sys

import llama_cpp as llama
import numpy as np

TOKENS = 32
F32 = 0

model_path, logits_path = sys.argv[1:]
llama.llama_backend_init()
model_params = llama.llama_model_default_params()
model_params.n_gpu_layers = 0
model = llama.llama_model_load_from_file(model_path.encode(), model_params)
assert model, "llama.cpp refuses the file: it says above why"

params = llama.llama_context_default_params()
params.n_ctx = params.n_batch = params.n_ubatch = 256
params.type_k = params.type_v = F32
params.flash_attn_type = 0
context = llama.llama_init_from_model(model, params)

n_vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
tokens = [(7 * i * i + 3 * i + 1) % n_vocab for i in range(TOKENS)]
batch = llama.llama_batch_init(TOKENS, 0, 1)
batch.n_tokens = TOKENS
for i, token in enumerate(tokens):
    batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
    batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
assert llama.llama_decode(context, batch) == 0

pointer = ctypes.cast(llama.llama_get_logits(context), ctypes.POINTER(ctypes.c_float))
logits = np.ctypeslib.as_array(pointer, (TOKENS, n_vocab)).astype("<f4")
with open(logits_path, "wb") as out:
    out.write(struct.pack(f"<4i{TOKENS}i", 0x4C4F4731, TOKENS, n_vocab, 0, *tokens))
    out.write(logits.tobytes())
