"""One look at /metrics, parsed as Prometheus does it."""
from prometheus_client.parser import text_string_to_metric_families


class Scrape:
    def __init__(self, client):
        reply = client.get("/metrics")
        assert reply.status_code == 200
        self.families = {family.name: family for family in text_string_to_metric_families(reply.text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def __call__(self, name, **labels):
        """The sum over all samples of that name with these labels, whatever others they have."""
        values = [sample.value for sample in self.samples
                  if sample.name == name and labels.items() <= sample.labels.items()]
        assert values, f"no sample {name} {labels}"
        return sum(values)
