package cli

import (
	"io"
	"os"
	"time"
)

// Env is everything a command takes from the world around it.
type Env struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Signals <-chan os.Signal // SIGINT and SIGTERM
	Now     func() time.Time
	Version string
	UID     int
}
