from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from framework.api import kind_of
from framework.api.admission import admit
from framework.api.linting import Severity, lint
from framework.api.linting.manifests import read_manifests
from tests.framework.api.admission_table import AdmissionCase, admission_cases, merged

POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "web"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            }
        }
    },
}
CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "r",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
    },
}
CONFIG = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "SchedulingConfig",
    "metadata": {"name": "default"},
    "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
}
PDB = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "web"}}}},
}


def found(*objects: object) -> list[tuple[str, str, str]]:
    """Return rule, object and field of every finding."""
    text = yaml.safe_dump_all(objects)
    return [(each.rule, each.obj, each.field) for each in lint({"f.yaml": text})]


def with_requirements(*listed: dict[str, object]) -> object:
    return merged(POOL, {"spec": {"template": {"spec": {"requirements": list(listed)}}}})


def test_the_founding_manifests_are_sound() -> None:
    seeds = Path(__file__).parent.parent / "seed_manifests.yaml"

    assert lint({"seeds": seeds.read_text()}) == ()


@pytest.mark.parametrize("case", [c for c in admission_cases() if c.update is None], ids=lambda c: c.id)
def test_lint_gives_the_verdict_of_the_api_server(case: AdmissionCase) -> None:
    findings = lint({"f": yaml.safe_dump(dict(case.manifest))}, gates=case.gates)

    refused = [each for each in findings if each.rule == "schema"]
    assert bool(refused) == (case.reject is not None), refused


def test_findings_carry_file_line_field_and_remedy() -> None:
    text = """# a comment
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: web
spec:
  weigth: 10
  template:
    spec:
      requirements:
        - key: karpenter.k8s.aws/instance-famly
          operator: In
          values: [m5]
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
"""

    findings = lint({"pools/web.yaml": text})

    assert [f"{each.file}:{each.line}: {each.message}" for each in findings] == [
        "pools/web.yaml:7: NodePool/web: spec.weigth is not a field; did you mean weight?",
        "pools/web.yaml:14: NodePool/web: spec.template.spec.nodeClassRef.name is missing; add it",
    ]


def test_the_entry_is_blamed_rather_than_the_list() -> None:
    wrong = with_requirements(
        {"key": "team", "operator": "Exists"},
        {"key": "karpenter.k8s.aws/instance-famly", "operator": "In", "values": ["m5"]},
    )

    assert found(wrong) == [("schema", "NodePool/web", "spec.template.spec.requirements[1].key")]


def test_lines_count_in_later_documents_and_lists() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [POOL, merged(POOL, {"spec": {"weight": 0}})]}
    text = "---\n" + yaml.safe_dump(CLASS) + "---\n" + yaml.safe_dump(listed, sort_keys=False)

    findings = lint({"f": text})

    assert [(each.line, each.field) for each in findings] == [
        (next(n for n, row in enumerate(text.splitlines(), start=1) if "weight" in row), "spec.weight")
    ]


def test_a_value_that_only_the_controller_refuses_is_found() -> None:
    typo = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["ondemand"]}

    assert found(with_requirements(typo)) == [
        ("validation", "NodePool/web", "spec.template.spec.requirements[0].values"),
        ("label-spelling", "NodePool/web", "spec.template.spec.requirements[0].values[0]"),
    ]


@pytest.mark.parametrize(
    ("requirements", "empty"),
    [
        ([{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}], False),
        (
            [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
                {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5", "c6i"]},
            ],
            True,
        ),
        (
            [
                {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["3"]},
                {"key": "karpenter.k8s.aws/instance-generation", "operator": "Lt", "values": ["5"]},
            ],
            False,
        ),
        (
            [
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["4"]},
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["5"]},
            ],
            True,
        ),
        (
            [
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gte", "values": ["4"]},
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lte", "values": ["5"]},
                {"key": "karpenter.k8s.aws/instance-cpu", "operator": "NotIn", "values": ["4"]},
            ],
            False,
        ),
        (
            [
                {"key": "team", "operator": "In", "values": ["a"]},
                {"key": "team", "operator": "NotIn", "values": ["a"]},
            ],
            True,
        ),
        (
            [
                {"key": "team", "operator": "Exists"},
                {"key": "team", "operator": "DoesNotExist"},
            ],
            True,
        ),
        (
            [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
                {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["b"]},
            ],
            True,
        ),
        ([{"key": "karpenter.k8s.aws/instance-category", "operator": "NotIn", "values": ["t", "a"]}], False),
        ([{"key": "node.kubernetes.io/instance-type", "operator": "DoesNotExist"}], True),
    ],
)
def test_pools_that_no_type_suits(requirements: list[dict[str, object]], empty: bool) -> None:
    findings = found(with_requirements(*requirements))

    assert (("pool-without-types", "NodePool/web", "spec.template.spec.requirements") in findings) is empty


def test_a_config_that_leaves_nothing_of_a_pool_is_found() -> None:
    pool = with_requirements({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]})
    config = merged(
        CONFIG,
        {"spec": {"requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}},
    )

    assert found(pool, config) == [("pool-without-types", "SchedulingConfig/default", "spec.requirements")]


def test_slips_in_labels_and_types_are_suggested() -> None:
    pool = with_requirements(
        {"key": "topology.kubernetes.io/zones", "operator": "Exists"},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.lrage", "m5.large"]},
        {"key": "example.com/zone", "operator": "Exists"},
    )

    findings = lint({"f": yaml.safe_dump(pool)})

    assert [(each.field, each.remedy, each.severity) for each in findings] == [
        (
            "spec.template.spec.requirements[0].key",
            "did you mean topology.kubernetes.io/zone?",
            Severity.WARNING,
        ),
        (
            "spec.template.spec.requirements[1].values[0]",
            "did you mean m5.large?",
            Severity.WARNING,
        ),
    ]


def test_a_class_that_no_pool_uses_and_a_pool_whose_class_is_not_there() -> None:
    other = merged(CLASS, {"metadata": {"name": "defualt"}})

    assert found(POOL, CLASS) == []
    assert sorted(found(POOL, other)) == [
        ("class-unused", "EC2NodeClass/defualt", ""),
        ("pool-class-missing", "NodePool/web", "spec.template.spec.nodeClassRef.name"),
    ]
    assert found(POOL) == []


def test_two_configs_on_one_pool() -> None:
    second = merged(CONFIG, {"metadata": {"name": "second"}})
    narrowed = merged(second, {"spec": {"nodePoolSelector": {"matchLabels": {"team": "a"}}}})

    assert found(POOL, CONFIG) == []
    assert found(POOL, CONFIG, second) == [("config-conflict", "SchedulingConfig/second", "spec")]
    assert found(POOL, CONFIG, narrowed) == [("config-unused", "SchedulingConfig/second", "spec")]


def test_budgets_that_never_allow_anything() -> None:
    never = merged(POOL, {"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "0%"}]}}})
    at_night = merged(
        POOL,
        {
            "spec": {
                "disruption": {
                    "consolidateAfter": "0s",
                    "budgets": [{"nodes": "0", "schedule": "@daily", "duration": "8h"}],
                }
            }
        },
    )

    assert found(never) == [("budget-blocks", "NodePool/web", "spec.disruption.budgets[0].nodes")]
    assert found(at_night) == []


def test_a_schedule_that_cannot_be_read() -> None:
    budget = {"nodes": "1", "schedule": "61 * * * *", "duration": "1h"}
    pool = merged(POOL, {"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [budget]}}})

    assert found(pool) == [("budget-schedule", "NodePool/web", "spec.disruption.budgets[0].schedule")]


def test_limits_of_nothing() -> None:
    assert found(merged(POOL, {"spec": {"limits": {"cpu": 0, "nvidia.com/gpu": 0}}})) == [
        ("limit-zero", "NodePool/web", "spec.limits.cpu")
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"maxUnavailable": 0}, "spec.maxUnavailable"),
        ({"maxUnavailable": "0%"}, "spec.maxUnavailable"),
        ({"minAvailable": "100%"}, "spec.minAvailable"),
        ({"minAvailable": 2}, "spec.minAvailable"),
        ({"minAvailable": 1}, None),
        ({"maxUnavailable": 1}, None),
    ],
    ids=str,
)
def test_pod_disruption_budgets_that_never_allow_an_eviction(
    spec: dict[str, object], field: str | None
) -> None:
    expected = [] if field is None else [("pdb-blocks", "PodDisruptionBudget/web", field)]

    assert found(DEPLOYMENT, merged(PDB, {"spec": spec})) == expected


def test_two_pod_disruption_budgets_on_one_pod() -> None:
    second = merged(PDB, {"metadata": {"name": "second"}, "spec": {"maxUnavailable": 1}})
    elsewhere = merged(second, {"metadata": {"namespace": "other"}})

    assert found(DEPLOYMENT, PDB, second) == [("pdb-blocks", "PodDisruptionBudget/second", "spec.selector")]
    assert found(DEPLOYMENT, PDB, elsewhere) == []


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        ({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool"}, "write karpenter.sh/v1"),
        (
            {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"},
            "it is called NodePool now; rewrite it",
        ),
        ({"kind": "NodePool"}, "write karpenter.sh/v1"),
        ({"apiVersion": "karpenter.sh/v1", "kind": "NodePol"}, "did you mean NodePool?"),
    ],
)
def test_kinds_that_are_not_served(head: dict[str, str], remedy: str) -> None:
    findings = lint({"f": yaml.safe_dump({**head, "metadata": {"name": "old"}})})

    assert [(each.rule, each.remedy) for each in findings] == [("kind", remedy)]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n" for last, name in pairwise("abcdefghi")
)
"""Nine lines that stand for a billion values."""


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: b\n  c: d: e\n", 2, "not readable"),
        ("kind: A\nkind: B\n", 2, "kind is there twice"),
        ("- a\n", 1, "is not an object"),
        ("just words\n", 1, "is not an object"),
        ("a: &x [*x]\n", 1, "nested more than 100 deep"),
        ("? [a]\n: b\n", 1, "has a key that is not text"),
        ("a: &x [*x, *x]\n", 1, "nested more than 100 deep"),
        ("{a: " * 2000, 1, "nested more than 100 deep"),
        ("[" * 2000, 1, "nested more than 100 deep"),
        (BOMB, 1, "aliases repeat more than 100000 values"),
        ("a:\n  <<: 5\n", 1, "merges what is not a map"),
        (f"a: {'9' * 5000}\n", 1, "a is no value that JSON could hold"),
        (f"a: 0x{'f' * 5000}\n", 1, "a is no value that JSON could hold"),
        ("a: !!int x\n", 1, "a is no value that JSON could hold"),
        ("a: !!bool x\n", 1, "a is no value that JSON could hold"),
        ("a: !!timestamp 2026-01-31\n", 1, "a is no value that JSON could hold"),
        ("a: !!python/name:os.getcwd ''\n", 1, "not readable"),
        ("kind: List\nitems:\n- 3\n", 3, "items[0] is not an object"),
    ],
)
def test_files_that_are_no_manifests(text: str, line: int, problem: str) -> None:
    findings = lint({"f": text})

    assert findings
    assert findings[0].line == line
    assert problem in findings[0].problem


def test_what_stands_beside_a_merge_key_overrides_it() -> None:
    text = "a: &a {key: x, values: [1]}\nb: {<<: *a, key: y}\nc: {<<: [{d: 1}, *a, {d: 2}]}\n"

    manifests, faults = read_manifests("f", text)

    assert faults == []
    assert manifests[0].raw["b"] == {"key": "y", "values": [1]}
    assert manifests[0].raw["c"] == {"d": 1, "key": "x", "values": [1]}


def test_messages_hold_nothing_that_a_terminal_obeys() -> None:
    text = 'apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: "a\\e[31m\\nb"}\n'

    (finding,) = lint({"f": text})

    assert finding.message.startswith("NodePol/a\\x1b[31m\\nb: ")


def test_objects_of_others_and_empty_documents_are_left_alone() -> None:
    assert lint({"f": "---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}) == ()


def test_a_field_behind_a_gate_says_so() -> None:
    later = merged(CLASS, {"spec": {"cpuOptions": {"nestedVirtualization": "enabled"}}})
    text = yaml.safe_dump_all([POOL, later])

    assert [each.problem for each in lint({"f": text})] == ["came after v1.9 and is behind a gate"]
    assert lint({"f": text}, gates=frozenset({"CPUOptions"})) == ()


def test_timestamps_and_numbers_in_yaml_stay_what_the_api_server_sees() -> None:
    pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a, annotations: {at: 2026-01-05}}\n"
    raw = yaml.safe_load(pool + yaml.safe_dump({"spec": POOL["spec"]}))
    kind = kind_of("karpenter.sh/v1", "NodePool")
    assert kind is not None
    assert admit(kind, merged(raw, {"metadata": {"annotations": {"at": "2026-01-05"}}})) == ()

    assert lint({"f": pool + yaml.safe_dump({"spec": POOL["spec"]})}) == ()
