package simcloud

import (
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// faults are what is wrong with the cloud just now.
type faults struct {
	blind      bool
	hold       bool
	holdReady  bool
	keepDisks  bool
	loseCreate bool
	late       func() // a create whose answer was lost
	loseNext   int    // answers still to be lost; the effects happen
	failures   []fleet.Code
}

var failureWords = map[fleet.Code]string{
	fleet.CodeStockout:     "ZONE_RESOURCE_POOL_EXHAUSTED: the zone has no capacity for this machine type",
	fleet.CodeQuota:        "QUOTA_EXCEEDED: the quota CPUS is used up in this region",
	fleet.CodeUnavailable:  "the cloud answers 503 Service Unavailable",
	fleet.CodeConflict:     "the name is in use",
	fleet.CodeImageMissing: "the image is gone",
	fleet.CodeInvalid:      "the request is not valid",
	fleet.CodeForbidden:    "compute.instances.create is required",
	fleet.CodeRateLimited:  "rate limit exceeded",
}

func (f *faults) takeCreateFailure() fleet.Code {
	if len(f.failures) == 0 {
		return ""
	}
	code := f.failures[0]
	f.failures = f.failures[1:]
	return code
}

// FailCreates lets the next creates fail with these kinds, one each.
func (c *Cloud) FailCreates(codes ...fleet.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.failures = append(c.faults.failures, codes...)
}

// LoseCreate makes the next create fail as unavailable though it will succeed:
// DeliverLate lets that happen.
func (c *Cloud) LoseCreate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.loseCreate = true
}

// DeliverLate lets a lost create succeed and yields the instance's id; "" if
// none was lost.
func (c *Cloud) DeliverLate() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults.late == nil {
		return ""
	}
	c.faults.late()
	c.faults.late = nil
	for _, e := range slices.Backward(c.journal) {
		if e.Act == "create" && e.Step == "effect" {
			return e.Instance
		}
	}
	return ""
}

// LoseAnswers loses the answers of the next n creates and deletes: the effect
// happens, the call errs.
func (c *Cloud) LoseAnswers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.loseNext = n
}

func (c *Cloud) lost() error {
	if c.faults.loseNext == 0 {
		return nil
	}
	c.faults.loseNext--
	return fleet.Errorf(fleet.CodeUnavailable, "the cloud's answer was lost: unexpected EOF")
}

// Blind makes every call fail as an outage does.
func (c *Cloud) Blind(blind bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.blind = blind
}

// Hold keeps acts in work until it ends.
func (c *Cloud) Hold(hold bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.hold = hold
	if hold {
		return
	}
	held := c.held
	c.held = nil
	for _, f := range held {
		f()
	}
}

// HoldReady keeps instances from being ready.
func (c *Cloud) HoldReady(hold bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.holdReady = hold
}

// KeepDisks makes deletes leave their disks while true.
func (c *Cloud) KeepDisks(keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.keepDisks = keep
}

// DropDisks removes the disks that belong to no instance.
func (c *Cloud) DropDisks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for disk, id := range c.disks {
		if c.instances[id] == nil {
			delete(c.disks, disk)
		}
	}
}

// AddImage and RemoveImage change the images there are.
func (c *Cloud) AddImage(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images = append(c.images, name)
}

// RemoveImage takes an image away; one at least is left.
func (c *Cloud) RemoveImage(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.images) > 1 {
		c.images = slices.DeleteFunc(c.images, func(i string) bool { return i == name })
	}
}

// SlowDeletes changes how long deletes take from now on.
func (c *Cloud) SlowDeletes(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.o.Delete = d
}
