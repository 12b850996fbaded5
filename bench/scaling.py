"""How the time of queries falls with the number of threads, and where it does not, why.

In: flags (`--help`). Out: `record/<host>/scaling.csv` and a summary. Beside the times stand two causes at the last number of threads:
the CPU time as a multiple of that at the first (work that grows with the threads, or memory that they wait for together), and the share
of the threads that worked (the rest waited). What plain compute gains is the bound.
Invariant: the engines run in turn at each number of threads, in processes of their own; answers are checked as in the benchmark.
"""

import concurrent.futures
import hashlib
import math
import statistics
import time

import report
from run import SetRun, checked, shared_flags, stem_of


def main() -> None:
    parser = shared_flags(__doc__)
    parser.add_argument("--at", default="1,2,4,8,16", help="numbers of threads, with commas")
    parser.add_argument("--touch-gb", type=float, default=4.0, help="memory that each process touches and frees first")
    parser.set_defaults(label="scaling", rounds=2, engines="grouse,duckdb", set="hits,g1,tpch,numbers")
    flags = checked(parser)
    at = [int(threads) for threads in flags.at.split(",")]
    stem = stem_of(flags)
    compute = [computed(threads) for threads in at]
    results = []
    try:
        for set_name in flags.set.split(","):
            for threads in at:
                flags.threads = threads
                print(f"{set_name} on {threads} threads", flush=True)
                runner = SetRun(set_name, flags)
                runner.has_floor = False
                results += [(threads, result) for result in runner.results()]
    finally:
        if results:
            write(stem, at, compute, results, flags)


def computed(threads: int) -> float:
    """Seconds that hashing takes, the same work for any number of threads."""
    blocks = [bytes(1 << 20)] * 960
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(hashlib.sha256, blocks))
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def write(stem, at: list[int], compute: list[float], results: list[tuple[int, report.Result]], flags) -> None:
    rows = [
        {"set": r.set_name, "table_rows": r.table_rows, "query": r.query, "engine": r.engine, "threads": threads}
        | {"status": r.status, "best_s": report.seconds(r.best_s), "samples_s": " ".join(map(report.seconds, r.samples_s))}
        | {"cpu_s": " ".join(map(report.seconds, r.cpu_s))}
        for threads, r in results
    ]
    best = {(r.set_name, r.query, r.engine, threads): r.best_s for threads, r in results}
    cpu = {(r.set_name, r.query, r.engine, threads): r.best_cpu_s for threads, r in results}
    names = list(dict.fromkeys((r.set_name, r.query) for _, r in results))
    engines = list(dict.fromkeys(r.engine for _, r in results))
    first, last = at[0], at[-1]
    bound = compute[0] / compute[-1]
    lines = ["# Scaling", "", *[f"- {line}" for line in report.Machine.here(flags).lines]]
    lines += [f"- plain compute, {first} to {last} threads: {bound:.1f}", ""]
    for engine in engines:
        lines += [f"## {engine} (best, ms, by threads)", ""]
        heads = [*map(str, at), f"{first} to {last}", f"CPU at {last} / {first}", f"working at {last}"]
        lines += ["| set | query | " + " | ".join(heads) + " |", "|---|---|" + "---:|" * len(heads)]
        for name in names:
            times = [best.get((*name, engine, threads)) for threads in at]
            cells = ["" if time is None else f"{time * 1e3:.0f}" for time in times]
            few, many = (cpu.get((*name, engine, threads)) for threads in (first, last))
            used = f"{many / (times[-1] * last):.0%}" if many and times[-1] else ""
            lines.append("| " + " | ".join([*name, *cells, quotient(times[0], times[-1]), quotient(many, few), used]) + " |")
        lines += ["", f"- {first} to {last} threads, geometric mean: {gain(best, names, engine, first, last)}", ""]
    peers = [engine for engine in engines if engine in report.PEERS]
    if "grouse" in engines and peers:
        lines.append(f"- grouse / best of {', '.join(peers)} at {last} threads: {against(best, names, peers, last)}")
    report.leave(stem, rows, lines)


def quotient(slow: float | None, fast: float | None) -> str:
    return f"{slow / fast:.1f}" if slow and fast else ""


def gain(best: dict, names: list, engine: str, first: int, last: int) -> str:
    pairs = [(best.get((*name, engine, first)), best.get((*name, engine, last))) for name in names]
    gains = [slow / fast for slow, fast in pairs if slow and fast]
    return f"{math.exp(statistics.fmean(map(math.log, gains))):.1f} ({len(gains)} queries)" if gains else "nothing to compare"


def against(best: dict, names: list, peers: list, threads: int) -> str:
    """The mean ratio to the best peer, and the worst query."""
    ratios = {}
    for name in names:
        times = [time for peer in peers if (time := best.get((*name, peer, threads))) is not None]
        ratios[name] = report.ratio(best.get((*name, "grouse", threads)), min(times, default=None))
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if not known:
        return "nothing to compare"
    worst = max(known, key=known.get)
    return f"{report.mean(list(known.values()))}, worst {known[worst]:.2f} ({worst[1]})"


if __name__ == "__main__":
    main()
