package worlds

import "time"

// clock is the world's discrete time and what is to happen in it. Nothing
// happens between two events; two events of one instant keep their order.
type clock struct {
	now   time.Duration // since the world began
	made  uint64
	queue []*event // a binary heap
}

// event is something that happens at a moment, unless it is called off.
type event struct {
	at  time.Duration
	nth uint64
	run func()
	off bool
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.nth < o.nth
}

// after lets something happen d from now; never before now.
func (c *clock) after(d time.Duration, run func()) *event {
	c.made++
	e := &event{at: c.now + max(d, 0), nth: c.made, run: run}
	c.queue = append(c.queue, e)
	for i := len(c.queue) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.queue[i].before(c.queue[parent]) {
			break
		}
		c.queue[i], c.queue[parent] = c.queue[parent], c.queue[i]
		i = parent
	}
	return e
}

// step lets the next thing happen; false = nothing is left.
func (c *clock) step() bool {
	for len(c.queue) > 0 {
		e := c.pop()
		if e.off {
			continue
		}
		c.now = e.at
		e.run()
		return true
	}
	return false
}

func (c *clock) pop() *event {
	top, last := c.queue[0], len(c.queue)-1
	c.queue[0], c.queue[last] = c.queue[last], nil
	c.queue = c.queue[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if c.queue[child].before(c.queue[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		c.queue[i], c.queue[least] = c.queue[least], c.queue[i]
		i = least
	}
}
