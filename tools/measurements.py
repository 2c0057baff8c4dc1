#!/usr/bin/env python3
"""Writes data/measurements: published measurements in the form that ships with Orrery.

  tools/measurements.py ORIGINALS [--out data/measurements]

ORIGINALS is a folder with tables as they were collected (training.csv, training_vtrain_single_node.csv, dlrm_moe.csv,
inference.csv, kernels.csv, collectives.csv, serving.csv): one line per measurement, with a column `source` that says
where it was read, and free text next to it. What is written has

- the columns that a prediction or a score reads and no others, and of those only the ones that a table fills,
- one spelling per number and per name (a network is the name of its kind, an algorithm is blank where the text only
  guesses it),
- a key of sources.csv in `source`, with the row, line or file in that source behind it,
- `unscored`: why a row has no score. A row is superseded where a newer release of the same software measured the same
  configuration.

Rows that their collector could not verify are left out. Predictions do not change: `validate` gives the same times for
the tables before and after.
"""
import argparse
import collections
import csv
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from calibrate import tables  # noqa: E402

TRAINING = ("id family config_group model layers hidden heads kv_heads ffn vocab seq precision gpus gpu_type gpus_per_node "
            "intra_bw_GBps nic_bw_GBps_per_gpu tp pp dp cp sp micro_batch global_batch vpp recompute lora zero "
            "step_time_s unscored source").split()
MIXTURES = ("id family config_group model layers hidden heads kv_heads ffn vocab seq experts topk moe_ffn precision gpus "
            "gpu_type gpus_per_node intra_bw_GBps nic_bw_GBps_per_gpu tp pp dp ep cp micro_batch global_batch vpp zero "
            "metric value unit step_time_s unscored source").split()
INFERENCE = ("id family config_group model layers hidden heads kv_heads ffn vocab precision gpus gpu_type intra_bw_GBps tp "
             "pp ep batch_or_concurrency isl osl mode engine metric value unit unscored source").split()
KERNELS = "id family config_group op gpu_type dtype m n k groups time_us unscored source".split()
COLLECTIVES = ("id family config_group collective algo dtype size_bytes gpus nodes gpus_per_node gpu_type intra_bw_GBps "
               "nic_bw_GBps_per_gpu network nccl_version time_us unscored source").split()
SERVING = ("id family config_group model_key precision gpus gpu_type mode tp pp ep dp_attn replicas prefill_workers "
           "prefill_gpus prefill_tp prefill_ep prefill_dp_attn decode_workers decode_gpus decode_tp decode_ep decode_dp_attn "
           "spec_method isl osl length_dist load_kind load num_requests max_batch max_batched_tokens engine engine_version "
           "measured ttft_mean_ms ttft_p50_ms ttft_p90_ms ttft_p99_ms tpot_mean_ms tpot_p50_ms tpot_p90_ms tpot_p99_ms "
           "e2e_mean_ms e2e_p50_ms e2e_p99_ms little_ratio output_tokens_per_s total_tokens_per_s requests_per_s unscored "
           "source").split()
TABLES = {"training.csv": TRAINING, "training_vtrain_single_node.csv": TRAINING, "dlrm_moe.csv": MIXTURES,
          "inference.csv": INFERENCE, "kernels.csv": KERNELS, "collectives.csv": COLLECTIVES, "serving.csv": SERVING}

# Columns of a table that stay with its rows where the others are setups.
STEPS = "id gpus tp pp dp ep cp sp seq micro_batch global_batch vpp metric value unit step_time_s unscored source".split()
OWN = {"training.csv": STEPS, "training_vtrain_single_node.csv": STEPS, "dlrm_moe.csv": STEPS,
       "inference.csv": "id tp pp batch_or_concurrency isl osl metric value unit unscored source".split(),
       "collectives.csv": "id collective algo dtype size_bytes time_us unscored source".split(),
       "serving.csv": ("id isl osl load num_requests max_batch max_batched_tokens ttft_mean_ms ttft_p50_ms ttft_p90_ms "
                       "ttft_p99_ms tpot_mean_ms tpot_p50_ms tpot_p90_ms tpot_p99_ms e2e_mean_ms e2e_p50_ms e2e_p99_ms "
                       "little_ratio output_tokens_per_s total_tokens_per_s requests_per_s unscored source").split()}

SUPERSEDED = "superseded by a newer release"
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
TEXT_COLUMNS = {"id", "family", "config_group", "model", "source", "nccl_version", "engine_version", "measured"}
READ = "2026-11"

# What networks are called; the first whose words are all in the text.
NETWORKS = ((("tcpx",), "GPUDirect-TCPX"), (("efa", "p5en"), "EFA v3"), (("efa", "p4d"), "EFA v1"), (("efa",), "EFA"),
            (("nvl72", "ib"), "NVL72, InfiniBand"), (("mnnvl",), "MNNVL"), (("roce",), "RoCE"),
            (("ndr", "ib"), "InfiniBand NDR"), (("hdr", "ib"), "InfiniBand HDR"), (("ib",), "InfiniBand"),
            (("nvl",), "NVLink"), (("nvswitch",), "NVLink"), (("xgmi",), "xGMI"), (("intra-node",), "one node"))
FORMATS = {"fp16/tf32 (hugectr; not parsed)": "fp16/tf32"}
MODES = {"static batch": "static batch", "agg": "in-flight batching",
         "offline max throughput (in-flight batching)": "in-flight batching, offline",
         "closed-loop concurrency": "closed-loop concurrency",
         "production prefill, disaggregated, 24h average": "production, disaggregated"}

# Title of the publication by family.
TITLES = {
    "mosaic_mpt": "MosaicML LLM Foundry, training benchmarks", "megatron_h100": "Megatron-LM, model table (H100)",
    "megatron_sc21": "Megatron-LM, table of 2021 (arXiv 2104.04473 table 1)",
    "megatron_2020_tp": "Megatron-LM, table of 2020", "megatron_seqsel": "arXiv 2205.05198 table 5, as quoted by Calculon",
    "vtrain_multi": "vTrain (arXiv 2312.12391), ground truth on several nodes",
    "vtrain_single": "vTrain (arXiv 2312.12391), ground truth on one node",
    "nemo_h100": "NeMo 24.07, performance summary", "nemo_longctx_cp": "NeMo, long sequences",
    "mbridge_dense": "Megatron-Bridge, performance summary", "mbridge_moe": "Megatron-Bridge, performance summary",
    "automodel_dense": "NeMo Automodel, performance summary", "automodel_moe": "NeMo Automodel, performance summary",
    "torchtitan": "torchtitan (arXiv 2410.06511), benchmarks", "maxtext_tpu": "MaxText, performance tables",
    "maxtext_moe": "MaxText, performance tables", "bigscience_a100": "BigScience BLOOM, chronicles",
    "bigscience_v100": "BigScience, GPT-2 experiments", "kempner_h200": "KempnerForge, MFU scaling",
    "misc_public": "AWS Neuron SDK, Trn1 training benchmarks",
    "llama3_405b": "Llama 3.1 405B at scale (arXiv 2407.21783 table 4 and its quotation)",
    "sok_dlrm": "HugeCTR sparse operation kit, DLRM benchmark",
    "trtllm_v1_offline": "TensorRT-LLM 1.0, performance overview", "trtllm_v06_static": "TensorRT-LLM 0.6.1, performance",
    "ft_gpt_static": "FasterTransformer, GPT guide", "vllm_ci_latency": "vLLM, performance benchmark of its CI",
    "deepseek_prod": "DeepSeek, inference system overview", "nim_llama33_70b": "NVIDIA NIM, benchmark of Llama 3.3 70B",
    "aic_silicon_curated": "aiconfigurator, silicon samples", "aic_gemm": "aiconfigurator, GEMM sweeps",
    "aiconfigurator_nccl": "aiconfigurator, NCCL sweeps", "llmcompass_gemm": "LLMCompass (ISCA 2024), GEMM measurements",
    "llmcompass_layer": "LLMCompass (ISCA 2024), layer measurements", "deepgemm_h800": "DeepGEMM, performance table",
    "aws_efa": "AWS, nccl-tests on EFA", "coreweave": "CoreWeave, nccl-tests", "oci": "Oracle Cloud, nccl-tests",
    "azure_aks": "Azure Kubernetes, nccl-tests", "gcp": "Google Cloud cluster toolkit, nccl-tests",
    "ml_engineering": "Machine Learning Engineering Open Book, network benchmarks",
    "astrasim_val": "ASTRA-sim, validation on HGX H100", "gh_issue": "nccl-tests, issues with output of users",
    "azure_baseline": "Azure, NCCL baselines", "vidur_allreduce": "Vidur (arXiv 2405.05465), network profiles",
    "vidur_sendrecv": "Vidur (arXiv 2405.05465), network profiles",
    "deepep": "DeepEP, performance", "aic_deepep_ll": "aiconfigurator, DeepEP low-latency sweeps",
    "mcore_moe_layer": "Megatron-LM, baselines of its MoE layer tests",
    "aic_silicon": "aiconfigurator, silicon samples of engines under load",
    "inferencex_dsr1": "InferenceX, DeepSeek-R1, as a copy of its application has it",
    "splitwise_perf": "Splitwise, measurements that its simulator reads",
    "dstack_405b_static": "dstack, H100 and MI300X, Llama 3.1 405B, batches", "dstack_405b_qps": "dstack, H100 and MI300X, Llama 3.1 405B, rates",
    "dstack_405b_bf16_mi300x": "dstack, Llama 3.1 405B on MI300X", "dstack_pd_ratio": "dstack, ratios of prefill and decode",
    "nebius_h200": "gpt-oss-120b on H200 at Nebius", "lmsys_pd_ep": "LMSYS, DeepSeek with prefill and decode apart and large EP",
    "vllm_request_runs": "LLMServingSim 2, logged runs of vLLM",
    "mlperf_inference_v4.1": "MLPerf Inference v4.1, results", "mlperf_inference_v5.1": "MLPerf Inference v5.1, results",
}
MLPERF = re.compile(r"github:mlcommons/training_results_v(\d\.\d):(\S+)@([0-9a-f]+)")
GITHUB = re.compile(r"github:([^/]+/[^:]+):(.*?)@([0-9a-f]{7,40}\^?)(.*)")
LOCATOR = re.compile(r"\b((?:row|line|lines) \d[\d-]*)\b")
MLPERF_SERVING = re.compile(r"github:mlcommons/inference_results_v(\d\.\d)@([0-9a-f]+) closed/(\w+)/results/([^ ]+)")
SERVED = re.compile(r"github:(?P<repository>[^@ ]+)(@(?P<commit>[0-9a-f]+))? (?P<path>[^@ ]+)(@(?P<file_commit>[0-9a-f]+))?( (?P<line>line \d+))?")
COPY = re.compile(r"via fork snapshot ([\w/-]+)@([0-9a-f]+)")
RELEASE = re.compile(r'"(\d\d\.\d\d[.\d]*) NeMo Container"')
SECTION = re.compile(r'section "([^"]*)"')


class Sources:
    """Publications by key. A key is made of the family and a number where a family has several."""

    def __init__(self):
        self.keys = {}  # (place, section or release) -> key
        self.rows = []
        self.count = collections.Counter()

    def key_of(self, family, place, section, release=""):
        known = self.keys.get((place, section))
        if known:
            return known
        if release:
            key = f"{family}-{release}"
        else:
            self.count[family] += 1
            key = family if self.count[family] == 1 else f"{family}-{self.count[family]}"
        self.keys[(place, section)] = key
        title = TITLES[family]
        self.rows.append([key, title, place, section, READ])
        return key

    def cite(self, family, text):
        mlperf = MLPERF.search(text)
        if mlperf:
            version, path, commit = mlperf.groups()
            place = f"https://github.com/mlcommons/training_results_v{version}"
            self.add_mlperf(version, f"{place}/tree/{commit}")
            return f"mlperf-v{version} {path}"
        locator = LOCATOR.search(text)
        behind = f" {locator.group(1)}" if locator else ""
        text = LOCATOR.sub("", text)
        release = RELEASE.search(text)
        section = SECTION.search(text)
        github = GITHUB.match(text)
        if github:
            repository, path, commit, _ = github.groups()
            place = f"https://github.com/{repository}/blob/{commit.rstrip('^')}/{path}"
        else:
            place = re.search(r"https?://\S+", text).group(0)
        heading = release.group(1) if release else section.group(1) if section else ""
        key = self.key_of(family, place, heading, release.group(1) if release else "")
        return key + behind

    def cite_served(self, family, text):
        """Of rows of serving, whose citations have the commit behind the repository or behind the file."""
        mlperf = MLPERF_SERVING.match(text)
        if mlperf:
            version, commit, submitter, path = mlperf.groups()
            path = path.replace("/performance/run_1/mlperf_log_summary.txt", "")
            place = f"https://github.com/mlcommons/inference_results_v{version}/tree/{commit}"
            return f"{self.key_of(family, place, 'closed/SUBMITTER/results')} {submitter}/{path}"
        copy = COPY.search(text)
        if copy:
            repository, commit = copy.groups()
            place = f"https://github.com/{repository}/tree/{commit}/packages/app/cypress/fixtures/api"
            return self.key_of(family, place, "benchmarks.json, benchmarks-history.json")
        served = SERVED.match(text)
        if not served:
            return self.key_of(family, f"https://{text}", "")
        part = served.groupdict()
        commit = part["commit"] or part["file_commit"] or "HEAD"
        place = f"https://github.com/{part['repository']}"
        if family == "nebius_h200":
            return f"{self.key_of(family, place, '')} {part['path']}"
        key = self.key_of(family, f"{place}/blob/{commit}/{part['path']}", "")
        return f"{key} {part['line']}" if part["line"] else key

    def add_mlperf(self, version, place):
        if (place, "") not in self.keys:
            self.keys[(place, "")] = f"mlperf-v{version}"
            self.rows.append([f"mlperf-v{version}", f"MLPerf Training v{version}, results", place, "", READ])


def number(text):
    """A number as shortly as it can be written without changing it."""
    value = float(text)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def network(text):
    low = text.lower()
    for words, name in NETWORKS:
        if all(word in low for word in words):
            return name
    return ""


def algorithm(text):
    """What ran, in a word; blank where the text guesses it or names several."""
    low = text.lower()
    if "likely" in low or "<" in low or ">" in low:
        return ""
    return next((name for name in ("nvls", "tree", "ring") if low.startswith(name)), "")


def part_of_step(row):
    return row.get("metric", "").startswith(("forward_time", "backward_time", "dispatch_", "combine_"))


def lengths(text):
    """How lengths are drawn, without how texts are made."""
    if text.startswith("uniform"):
        return text.split(" ")[0]
    return "fixed" if text.startswith("fixed ") and "(" not in text else text


def suspicion(row):
    """Why a row of serving has no score."""
    if row["quality"] != "suspect":
        return ""
    if "disagrees" in row["notes"]:
        return "suspect: throughput and latencies disagree"
    return "suspect: " + row["notes"].rsplit("; ", 1)[-1]


def cell(column, row):
    text = row.get(column, "").strip()
    if column == "network":
        return network(text)
    if column == "algo":
        return algorithm(text)
    if column == "length_dist":
        return lengths(text)
    if column == "mode" and "load_kind" in row:
        return text
    if column in ("precision", "dtype"):
        return FORMATS.get(text, text)
    if column == "mode":
        return MODES[text]
    if column == "gpu_type":
        return text.split(" (")[0]
    if column == "nic_bw_GBps_per_gpu" and not NUMBER.fullmatch(text):
        return ""
    if column in ("metric", "value", "unit") and "experts" in row and not part_of_step(row):
        return ""  # of a step, step_time_s has it
    if column not in TEXT_COLUMNS and NUMBER.fullmatch(text):
        return number(text)
    return text


def compact(path, columns, sources):
    """Header and lines of one table."""
    rows = [row for row in tables.read([path]) if row.family != "memory_unverified"]
    is_serving = path.name == "serving.csv"
    newest = {id(row) for row in (rows if is_serving else tables.newest(rows))}
    cite = sources.cite_served if is_serving else sources.cite
    lines = []
    for row in rows:
        cells = row.cells
        cells["unscored"] = suspicion(cells) if is_serving else "" if id(row) in newest else SUPERSEDED
        lines.append([cite(row.family, cells["source"]) if column == "source" else cell(column, cells)
                      for column in columns])
    filled = [i for i in range(len(columns)) if any(line[i] for line in lines)]
    return [columns[i] for i in filled], [[line[i] for i in filled] for line in lines]


def split(header, lines, own):
    """Header and lines with a column setup_row in place of the columns that are not in `own`, and those of the setups,
    in the order of their first rows."""
    inside = [i for i, column in enumerate(header) if column in own]
    shared = [i for i in range(len(header)) if i not in inside]
    setups, rows = {}, []
    for line in lines:
        setup = setups.setdefault(tuple(line[i] for i in shared), len(setups) + 1)
        first, *others = [line[i] for i in inside]
        rows.append([first, setup, *others])
    first, *others = [header[i] for i in inside]
    return ([first, tables.SETUP_ROW, *others], rows,
            [tables.SETUP_ROW, *[header[i] for i in shared]], [[number, *cells] for cells, number in setups.items()])


def write(path, header, lines):
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)


def write_table(folder, name, header, lines):
    """The files of one table; returns their bytes."""
    paths = [folder / name]
    if name in OWN:
        paths.append(folder / "setups" / name)
        header, lines, setup_header, setups = split(header, lines, OWN[name])
        write(paths[1], setup_header, setups)
    write(paths[0], header, lines)
    return sum(path.stat().st_size for path in paths)


def kept_sources(path, written):
    """Sources of tables that this program does not write."""
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return [row for row in list(csv.reader(stream))[1:] if row[0] not in written]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("originals", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "data/measurements")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    sources = Sources()
    for name, columns in TABLES.items():
        header, lines = compact(options.originals / name, columns, sources)
        print(f"{name}: {len(lines)} rows, {write_table(options.out, name, header, lines)} bytes")
    path = options.out / "sources.csv"
    others = kept_sources(path, {row[0] for row in sources.rows})
    write(path, ["key", "title", "place", "section", "read"], sorted(sources.rows) + others)


if __name__ == "__main__":
    main()
