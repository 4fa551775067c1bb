"""One description, read as objects and as a Helm template."""

from spinney.cli.installing.description import (
    ChartSetting,
    Computed,
    Each,
    Value,
    When,
    every,
    given,
    made,
    no,
    template,
    text,
)

HERE = Computed(".Release.Namespace", lambda setting: setting.namespace)
DESCRIPTION = When(
    every(Value("enabled"), no(Value("off"))),
    {
        "kind": "Thing",
        "metadata": {"name": text("thing-", Value("name")), "namespace": HERE, "labels": given("labels")},
        "spec": [{"fixed": True}, Each("more"), When(Value("last"), Value("last"))],
    },
)


def a_setting(**values: object) -> ChartSetting:
    """Return values to fill places in from."""
    return ChartSetting(values, "here", "1")


def test_places_are_filled_in() -> None:
    """Values, texts and what follows from them take their places; what a condition excludes is not there at all."""
    setting = a_setting(enabled=True, name="a", labels={"x": "y"}, more=[1, {"two": 2}], last="end")
    assert made([DESCRIPTION], setting) == [
        {
            "kind": "Thing",
            "metadata": {"name": "thing-a", "namespace": "here", "labels": {"x": "y"}},
            "spec": [{"fixed": True}, 1, {"two": 2}, "end"],
        }
    ]
    assert made([DESCRIPTION], a_setting(enabled=True, name="b", labels={})) == [
        {"kind": "Thing", "metadata": {"name": "thing-b", "namespace": "here"}, "spec": [{"fixed": True}]}
    ]
    assert made([DESCRIPTION], a_setting(enabled=True, off=True)) == []


def test_the_template_has_the_same_places() -> None:
    """Each place becomes the action of Helm's that fills it in."""
    assert template([DESCRIPTION]).splitlines() == [
        "{{- if and (.Values.enabled) (not (.Values.off)) }}",
        "---",
        'kind: "Thing"',
        "metadata:",
        '  name: "thing-{{ .Values.name }}"',
        "  namespace: {{ .Release.Namespace | toJson }}",
        "{{- if .Values.labels }}",
        "  labels: {{ toJson .Values.labels }}",
        "{{- end }}",
        "spec:",
        "  - fixed: true",
        "{{- range .Values.more }}",
        "  - {{ toJson . }}",
        "{{- end }}",
        "{{- if .Values.last }}",
        "  - {{ toJson .Values.last }}",
        "{{- end }}",
        "{{- end }}",
    ]
