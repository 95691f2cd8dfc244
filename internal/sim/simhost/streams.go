package simhost

import (
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// frozen is a connection that stands still while the host hangs.
type frozen struct {
	net.Conn
	f *faults
}

func (c *frozen) thawed() {
	c.f.mu.Lock()
	hung := c.f.hung
	c.f.mu.Unlock()
	if hung != nil {
		<-hung
	}
}

// Read implements net.Conn.
func (c *frozen) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.thawed()
	return n, err
}

// Write implements net.Conn.
func (c *frozen) Write(p []byte) (int, error) {
	c.thawed()
	return c.Conn.Write(p)
}

// output is a session's stream: safe for several writers, and cut after some
// bytes if a fault says so. What is written later goes nowhere.
type output struct {
	mu   sync.Mutex
	w    io.Writer
	cut  int
	conn ssh.Conn
	gone bool
}

// Write implements io.Writer; it never fails, as a command whose reader is
// gone mostly does not notice.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return len(p), nil
	}
	part := p
	if o.cut > 0 && len(part) >= o.cut {
		part = part[:o.cut]
	}
	_, err := o.w.Write(part)
	o.gone = err != nil
	if o.cut > 0 {
		if o.cut -= len(part); o.cut == 0 {
			o.gone = true
			_ = o.conn.Close()
		}
	}
	return len(p), nil
}
