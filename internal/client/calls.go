package client

import "context"

// Ask asks for operations; key is the Idempotency-Key, "" = none.
func (c *Client) Ask(ctx context.Context, fleetName, key string, body AskBody) (*Asked, error) {
	params := &AskParams{}
	if key != "" {
		params.IdempotencyKey = &key
	}
	response, err := c.api.Ask(ctx, fleetName, params, body)
	return read[Asked](c, response, err)
}

// Plan says what Ask would do.
func (c *Client) Plan(ctx context.Context, fleetName string, body AskBody) (*Asked, error) {
	response, err := c.api.Plan(ctx, fleetName, &PlanParams{}, body)
	return read[Asked](c, response, err)
}

// Operation shows one operation, by id or a beginning of it.
func (c *Client) Operation(ctx context.Context, id string) (*Operation, error) {
	response, err := c.api.GetOperation(ctx, id)
	return read[Operation](c, response, err)
}

// Operations lists operations, newest first.
func (c *Client) Operations(ctx context.Context, params ListOperationsParams) (*Operations, error) {
	response, err := c.api.ListOperations(ctx, &params)
	return read[Operations](c, response, err)
}

// Events reads the journal.
func (c *Client) Events(ctx context.Context, params ListEventsParams) (*Events, error) {
	response, err := c.api.ListEvents(ctx, &params)
	return read[Events](c, response, err)
}

// Deliveries lists webhook deliveries, newest first.
func (c *Client) Deliveries(ctx context.Context, params ListDeliveriesParams) (*Deliveries, error) {
	response, err := c.api.ListDeliveries(ctx, &params)
	return read[Deliveries](c, response, err)
}

// Fleets lists the fleets.
func (c *Client) Fleets(ctx context.Context) (*Fleets, error) {
	response, err := c.api.ListFleets(ctx)
	return read[Fleets](c, response, err)
}

// VMs lists a fleet's members.
func (c *Client) VMs(ctx context.Context, fleetName string) (*VMs, error) {
	response, err := c.api.ListVms(ctx, fleetName)
	return read[VMs](c, response, err)
}

// Examine asks the doctor; no VMs = all.
func (c *Client) Examine(ctx context.Context, fleetName string, vms []string) (*Report, error) {
	params := &ExamineParams{}
	if len(vms) > 0 {
		params.Vm = &vms
	}
	response, err := c.api.Examine(ctx, fleetName, params)
	return read[Report](c, response, err)
}

// Cancel ends an operation and gives intake back.
func (c *Client) Cancel(ctx context.Context, id string) (*Operation, error) {
	return c.CancelBecause(ctx, id, "")
}

// CancelBecause is Cancel with a reason for the journal.
func (c *Client) CancelBecause(ctx context.Context, id, why string) (*Operation, error) {
	response, err := c.api.CancelOperation(ctx, id, reason(why))
	return read[Operation](c, response, err)
}

// Change extends a drain that is under way, or puts it under another policy; key
// is the Idempotency-Key, "" = none.
func (c *Client) Change(ctx context.Context, id, key string, body ChangeBody) (*Operation, error) {
	params := &ChangeOperationParams{}
	if key != "" {
		params.IdempotencyKey = &key
	}
	response, err := c.api.ChangeOperation(ctx, id, params, body)
	return read[Operation](c, response, err)
}

// SkipDrain has an operation go on without waiting for jobs.
func (c *Client) SkipDrain(ctx context.Context, id, key, why string) (*Operation, error) {
	params := &SkipDrainParams{}
	if key != "" {
		params.IdempotencyKey = &key
	}
	response, err := c.api.SkipDrain(ctx, id, params, reason(why))
	return read[Operation](c, response, err)
}

func reason(why string) WhyBody {
	if why == "" {
		return WhyBody{}
	}
	return WhyBody{Why: &why}
}

// Resume goes on with an operation; image "" keeps the one asked for.
func (c *Client) Resume(ctx context.Context, id, image string) (*Operation, error) {
	body := ResumeBody{}
	if image != "" {
		body.Image = &image
	}
	response, err := c.api.ResumeOperation(ctx, id, body)
	return read[Operation](c, response, err)
}
