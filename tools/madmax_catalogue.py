#!/usr/bin/env python3
"""Writes data/madmax from tables of MAD-Max's configurations (arXiv 2310.02784): models.csv and systems.csv, a row per
configuration, columns named as in its configuration files.

Run once; the program reads the output, never the tables. The output also has the source of each figure and the contents of
data/madmax/additions.csv: irregularities of a configuration, and the rent of a device.

  tools/madmax_catalogue.py FOLDER_WITH_THE_TABLES
"""
import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "data" / "madmax"
READ = "read 2026-11"
MODEL_SOURCE = f"model configuration of MAD-Max, arXiv 2310.02784, {READ}"
SYSTEM_SOURCE = f"system configuration of MAD-Max, arXiv 2310.02784, {READ}"
PRICE_SOURCE = f"sheet of MAD-Max's study of cloud instances (arXiv 2310.02784, figure 16), {READ}"
PRECISION_OF_BYTES = {"4": "fp32", "2": "fp16"}


def additions():
    """The rows of data/madmax/additions.csv by name."""
    lines = [line for line in (ROOT / "additions.csv").read_text().splitlines() if not line.startswith("#")]
    return {row["name"]: row for row in csv.DictReader(lines)}


def number(text):
    """A figure of a table without the exponent and the fraction that whole numbers do not need."""
    value = float(text)
    return str(int(value)) if value == int(value) else repr(value)


def scaled(text, unit, factor):
    return f"{number(repr(float(text) / factor))} {unit}"


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def description(label, odd):
    return f'"{label}; {odd}"' if odd else f'"{label}"'


def mlp(layers, width):
    return f"[{', '.join([number(width)] * int(float(layers)))}]"


def recommender(row):
    """MAD-Max's MLPs are layers of one width, the first one's input included: what enters has that width, too."""
    width = number(row["mlp_dim"])
    lines = [
        "recommender:",
        f"  dense_features: {width}",
        f"  bottom: {mlp(row['num_bot_mlp_layers'], width)}",
        "  tables:",
        f"    - {{count: {number(row['num_tables'])}, rows: {number(row['entries_per_table'])}, "
        f"width: {number(row['emb_dim'])}, lookups: {number(row['pooling_size'])}}}",
        f"  table_precision: {PRECISION_OF_BYTES[number(row['bytes_per_emb_param'])]}",
        f"  dense_precision: {PRECISION_OF_BYTES[number(row['bytes_per_nonemb_param'])]}",
    ]
    if row["num_transformer_layers"]:
        lines.append(f"  interaction: {{kind: transformer, layers: {number(row['num_transformer_layers'])}, "
                     f"heads: {number(row['num_transformer_heads'])}, width: {number(row['attention_dim'])}, "
                     f"ffn: {number(row['transformer_fc_dim'])}, tokens: {number(row['transformer_seq_len'])}, "
                     f"output: {width}}}")
    else:
        lines.append(f"  interaction: {{kind: opaque, width: {width}}}")
    lines.append(f"  top: {mlp(row['num_top_mlp_layers'], width)}")
    if row["num_experts"]:
        lines.append(f"  top_experts: {{count: {number(row['num_experts'])}, "
                     f"active: {number(row['num_active_experts'])}}}")
    extra = ["  recommender.dense_features, recommender.interaction: \"by definition as wide as the MLPs' layers, which is "
             "how MAD-Max's equations count their first ones; what the interaction does besides, they do not say\""]
    return lines, ["recommender"], extra


def transformer(row):
    assert number(row["bytes_per_nonemb_param"]) == "2" and number(row["bytes_per_emb_param"]) == "2"
    lines = [f"layers: {number(row['num_transformer_layers'])}", f"hidden: {number(row['attention_dim'])}",
             f"heads: {number(row['num_transformer_heads'])}"]
    figures = ["layers", "hidden", "heads"]
    extra = []
    if float(row["attention_dim"]) % float(row["num_transformer_heads"]):
        width = math.ceil(float(row["attention_dim"]) / float(row["num_transformer_heads"]))
        lines.append(f"head_dim: {width}")
        extra.append(f"  head_dim: \"by definition hidden / heads, here rounded up; MAD-Max's equations do not read it\"")
    if row["num_experts"]:
        lines.append(f"experts: {{count: {number(row['num_experts'])}, active: {number(row['num_active_experts'])}, "
                     f"ffn: {number(row['transformer_fc_dim'])}}}")
        figures.append("experts")
    else:
        lines.append(f"ffn: {number(row['transformer_fc_dim'])}")
        figures.append("ffn")
    if row["image_size"]:
        lines += ["causal: false", f"vision: {{image: {number(row['image_size'])}, patch: {number(row['patch_dim'])}}}"]
        figures += ["causal", "vision"]
    else:
        lines += [f"vocab: {number(row['entries_per_table'])}", f"max_seq: {number(row['transformer_seq_len'])}"]
        figures += ["vocab", "max_seq"]
    return lines, figures, extra


def write_model(row, added):
    name = row["config"].split("/")[-1]
    lines, figures, extra = recommender(row) if row["type"].startswith("DLRM") else transformer(row)
    head = [f"name: madmax/{name}", f"description: {description(row['name'], added.get(name, {}).get('note'))}"]
    sources = ["sources:", f"  {', '.join(figures)}: \"{MODEL_SOURCE}\""]
    write(ROOT / "models" / f"{name}.yaml", head + lines + sources + extra)


def write_system(row, added):
    name = row["config"].split("/")[-1]
    of_kind = added.get(name.rsplit('_', 1)[0], {})
    per_node = int(float(row["num_devices"])) // int(float(row["num_nodes"]))
    tera, giga = 1e12, 1e9
    lines = [
        f"name: madmax/{name}", f"description: {description(row['name'], of_kind.get('note'))}",
        f"devices: {number(row['num_devices'])}", f"devices_per_node: {per_node}",
        "peak:",
        f"  fp64: {scaled(row['f64_flops'], 'TFLOP/s', tera)}", f"  fp32: {scaled(row['f32_flops'], 'TFLOP/s', tera)}",
        f"  fp16: {scaled(row['f16_flops'], 'TFLOP/s', tera)}", f"  int8: {scaled(row['i8_ops'], 'TFLOP/s', tera)}",
        f"peak_utilisation: {number(row['flops_util'])}",
        f"memory: {scaled(row['mem_cap'], 'GB', giga)}", f"memory_bandwidth: {scaled(row['mem_bw'], 'GB/s', giga)}",
        f"memory_utilisation: {number(row['mem_bw_util'])}",
        f"scale_up: {{links: {number(row['num_nvlinks'])}, bandwidth: {scaled(row['bw_per_nvlink'], 'GB/s', giga)}, "
        f"utilisation: {number(row['nvlink_util'])}}}",
        f"scale_out: {{links: {number(row['num_ibroce_ports'])}, bandwidth: {scaled(row['ibroce_bw'], 'GB/s', giga)}, "
        f"utilisation: {number(row['ibroce_util'])}}}",
        f"all_reduce_blend: {number(row['ar_perc_intra'])}",
    ]
    figures = ["devices", "devices_per_node", "peak", "peak_utilisation", "memory", "memory_bandwidth",
               "memory_utilisation", "scale_up", "scale_out", "all_reduce_blend"]
    sources = ["sources:", f"  {', '.join(figures)}: \"{SYSTEM_SOURCE}\""]
    if of_kind.get("usd_per_device_hour"):
        lines += [f"usd_per_device_hour: {number(of_kind['usd_per_device_hour'])}",
                  f"watts_per_device: {number(of_kind['watts_per_device'])}"]
        sources.append(f"  usd_per_device_hour, watts_per_device: \"{PRICE_SOURCE}\"")
    write(ROOT / "systems" / f"{name}.yaml", lines + sources)


def main():
    folder = pathlib.Path(sys.argv[1])
    added = additions()
    for row in csv.DictReader((folder / "models.csv").open()):
        write_model(row, added)
    for row in csv.DictReader((folder / "systems.csv").open()):
        write_system(row, added)


if __name__ == "__main__":
    main()
