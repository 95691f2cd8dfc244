package simcloud

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Guest is what runs in an instance.
type Guest interface {
	Address() string // host:port for SSH
	HostKey() string // as the guest reported it
	SystemID() string
	Up() bool // has booted
	PowerOn()
	PowerCut()
	Destroy() // for good; returns when nothing of it runs
}

// Options start a cloud. Clock is required.
type Options struct {
	Clock simclock.Clock
	// NewGuest makes what runs in a new instance, switched off. Nil: nothing
	// does, and instances are ready at once.
	NewGuest func(vm, instance string) (Guest, error)
	// Gone is told that a guest was destroyed. May be nil.
	Gone func(systemID string)
	// Create, Delete are how long these acts take.
	Create, Delete time.Duration
	// DiskLag is how long a deleted instance's disk outlives it.
	DiskLag time.Duration
	// Images are the images there are, newest last; default one.
	Images []string
}

// Newest is the name of an image that Prepare resolves to the last of Images.
const Newest = "newest"

type instance struct {
	fleet.Instance
	token string
	guest Guest
	off   bool
	going bool // a delete has begun
}

// act is a create or delete in work or ended, by its token.
type act struct {
	kind, vm, instance, token, operation string
	ended                                bool
	err                                  error
}

// Cloud is the cloud. It is safe for concurrent use.
type Cloud struct {
	o Options

	mu        sync.Mutex
	images    []string
	instances map[string]*instance
	disks     map[string]string // disk → instance
	acts      map[string]*act
	journal   []Entry
	lastID    int
	faults    faults
	held      []func() // effects that wait for Hold to end
	wait      sync.WaitGroup
	closed    bool
	timers    map[int]simclock.Timer
	lastTimer int
}

// New makes an empty cloud.
func New(o Options) *Cloud {
	if len(o.Images) == 0 {
		o.Images = []string{"runner-image-1"}
	}
	return &Cloud{
		o: o, images: slices.Clone(o.Images), instances: map[string]*instance{}, disks: map[string]string{},
		acts: map[string]*act{}, lastID: 4200, timers: map[int]simclock.Timer{},
	}
}

// Entry is one line of the journal.
type Entry struct {
	At        time.Time `json:"at"`
	Act       string    `json:"act"`  // create, delete, appear
	Step      string    `json:"step"` // begin, effect, end, failed, refused
	VM        string    `json:"vm"`
	Instance  string    `json:"instance,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Token     string    `json:"token,omitempty"`
	Detail    string    `json:"detail,omitempty"`
}

// Journal yields every act so far: what was asked, done and answered.
func (c *Cloud) Journal() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.journal)
}

// note writes a line. Lock held.
func (c *Cloud) note(a *act, step, detail string) {
	c.journal = append(c.journal, Entry{
		At: c.o.Clock.Now(), Act: a.kind, Step: step, VM: a.vm, Instance: a.instance,
		Operation: a.operation, Token: a.token, Detail: detail,
	})
}

// after runs f with the lock held once d has passed and acts are not held.
// Lock held.
func (c *Cloud) after(d time.Duration, f func()) {
	c.lastTimer++
	id := c.lastTimer
	c.timers[id] = c.o.Clock.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, id)
		switch {
		case c.closed:
		case c.faults.hold:
			c.held = append(c.held, f)
		default:
			f()
		}
	})
}

// put makes an instance with its disk and starts its guest. Lock held.
func (c *Cloud) put(vm, image, token string, labels map[string]string) (*instance, error) {
	if c.closed {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s: the cloud is closed", vm)
	}
	c.lastID++
	id := fmt.Sprintf("i-%d", c.lastID)
	in := &instance{token: token, Instance: fleet.Instance{
		ID: id, VM: vm, Image: image, Labels: labels, CreatedAt: c.o.Clock.Now(), Address: fmt.Sprintf("192.0.2.%d:22", c.lastID%250+1),
	}}
	if c.o.NewGuest != nil {
		g, err := c.o.NewGuest(vm, id)
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeInternal, "%s: the guest of %s could not be made: %w", vm, id, err)
		}
		in.guest = g
		in.Address = g.Address()
		g.PowerOn()
	}
	c.instances[id] = in
	c.disks["disk-"+id] = id
	return in, nil
}

// take removes an instance: its guest ends at once, its disk after a while.
// Lock held.
func (c *Cloud) take(in *instance) {
	delete(c.instances, in.ID)
	if in.guest != nil {
		in.guest.PowerCut()
		if c.o.Gone != nil {
			c.o.Gone(in.guest.SystemID())
		}
		c.wait.Go(in.guest.Destroy)
	}
	if c.faults.keepDisks {
		return
	}
	if c.o.DiskLag == 0 {
		delete(c.disks, "disk-"+in.ID)
		return
	}
	c.after(c.o.DiskLag, func() { delete(c.disks, "disk-"+in.ID) })
}

// Close ends every guest and every act, and waits for them.
func (c *Cloud) Close() {
	c.mu.Lock()
	c.closed = true
	for _, t := range c.timers {
		t.Stop()
	}
	for _, in := range c.instances {
		if in.guest != nil {
			c.wait.Go(in.guest.Destroy)
		}
	}
	clear(c.instances)
	c.mu.Unlock()
	c.wait.Wait()
}
