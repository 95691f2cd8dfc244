package metrics

// eventOther stands for every event that is not among Options.WebhookEvents:
// the name comes from a header that anybody can write.
const eventOther = "other"

// WebhookResults are what may become of a delivery: its work is stored; it was
// here before; nothing is configured for it; its secret or form was refused; it
// is genuine, but its work could not be stored.
func WebhookResults() []string {
	return []string{"accepted", "duplicate", "ignored", "refused", "failed"}
}

func (m *Metrics) openWebhooks(events []string) {
	m.webhooks = counter("webhook_deliveries_total", "Deliveries of GitLab webhooks by event and by what became of them.", "event", "result")
	m.webhookEvents = map[string]bool{eventOther: true}
	for _, event := range events {
		m.webhookEvents[event] = true
	}
	for event := range m.webhookEvents {
		for _, result := range WebhookResults() {
			m.webhooks.WithLabelValues(event, result)
		}
	}
}

// WebhookDelivery counts one delivery. An unknown event is counted as other;
// result is one of WebhookResults.
func (m *Metrics) WebhookDelivery(event, result string) {
	if m.webhooks == nil {
		return
	}
	if !m.webhookEvents[event] {
		event = eventOther
	}
	m.webhooks.WithLabelValues(event, result).Inc()
}
