# A make rule for artefacts: `include tpc.mk`, then `all: models/model.tpc`.
# TPC_OPTIONS are placement options, such as `--devices cpu,cpu -c 8k`.
TPC ?= tpc

%.tpc: %.gguf
	$(TPC) compile $< -o $@ --depfile $@.d $(TPC_OPTIONS)

-include $(wildcard *.tpc.d */*.tpc.d)
