# Everything is a script in scripts/; this file only names them.
.PHONY: capi demo test bench parity python fuzz lint darwin valgrind clean

capi: ## The C library and its headers in build/
	@scripts/capi.sh

demo: ## Embed sentences with a pretrained model and compare with onnxruntime
	@scripts/demo.sh

test: ## Lints, all tests, doc tests; sets up the Python oracles on the first run
	@scripts/test.sh

bench: ## Benchmarks, side by side with onnxruntime and the Python package
	@scripts/bench.sh

parity: ## Train nets here and in PyTorch and compare accuracies; under 75 minutes, goes on where it was
	@scripts/parity.sh

python: ## Build the Python package's module and run its tests
	@scripts/python.sh

fuzz: ## Compare 100,000 random graphs on all devices, then run the fuzz targets (with cargo-fuzz)
	@scripts/fuzz.sh

lint: ## Formatting and lints alone
	@scripts/lint.sh

darwin: ## Check, lint and link for Apple's arm64; run the ABI test in a CPU emulator
	@scripts/darwin.sh

valgrind: ## The tests of the calls into Apple's code under valgrind
	@scripts/valgrind.sh

clean: ## Remove builds, environments, downloads and fixtures
	rm -rf build target .cache .venv .venv-demo .venv-python .venv-upstream
