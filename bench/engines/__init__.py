"""The engines that the benchmark compares, one module each; `server` is what they have in common.

`python -m engines.duckdb` starts one: requests come as JSON lines on standard input, answers go to standard output.
"""
