// Command cloudcall is the command of an exec provider whose cloud lives in
// another process: it carries the request on standard input to a Unix socket
// (its only argument), and comes back with the answer and the exit status.
//
// It is run thousands of times, so it links nothing that it can do without.
package main

import (
	"bytes"
	"io"
	"net"
	"os"
)

// unavailable is the exit code of a cloud that does not answer
// (docs/providers/exec.md).
const unavailable = 5

func main() { os.Exit(run()) }

// run carries one request. The answer's first byte is the exit status.
func run() int {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Args[1], Net: "unix"})
	if err != nil {
		return fail(err.Error())
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.Copy(conn, os.Stdin); err != nil {
		return fail(err.Error())
	}
	if err := conn.CloseWrite(); err != nil {
		return fail(err.Error())
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		return fail(err.Error())
	}
	status, err := answer.ReadByte()
	if err != nil {
		return fail("the cloud's answer was lost")
	}
	if _, err := answer.WriteTo(os.Stdout); err != nil {
		return fail(err.Error())
	}
	return int(status)
}

func fail(why string) int {
	_, _ = os.Stderr.WriteString(why + "\n")
	return unavailable
}
