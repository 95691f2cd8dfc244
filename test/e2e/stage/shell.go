package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
)

// Shell is an SSH login on one machine: what a person at a terminal has. It checks the
// machine's own host key.
type Shell struct{ client *ssh.Client }

// The machines' login users: fedora is the runner's own and sluice is not, both with the
// rights of the project's sudoers file; ops is an administrator.
const (
	Fedora = "fedora"
	Sluice = "sluice"
	Ops    = "ops"
)

// Login waits until the machine lets the user in, at most 30 s.
func (s *Stage) Login(ctx context.Context, m *machines.Machine, user string) (*Shell, error) {
	var shell *Shell
	var last error
	err := Await(ctx, 30*time.Second, "sshd on "+m.Name, func(ctx context.Context) (bool, error) {
		shell, last = s.login(ctx, m.ID, user)
		return last == nil, nil
	})
	return shell, errors.Join(err, last)
}

func (s *Stage) login(ctx context.Context, id, user string) (*Shell, error) {
	m, err := s.World.Describe(id)
	if err != nil {
		return nil, err
	}
	if len(m.HostKeys) == 0 {
		return nil, errors.New("it has no host key yet")
	}
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(m.HostKeys[0]))
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	private, err := os.ReadFile(s.Path("id_ed25519"))
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, err
	}
	address := m.Address + ":22"
	conn, err := s.World.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	client, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(host), HostKeyAlgorithms: []string{host.Type()},
		Timeout: 5 * time.Second,
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Shell{ssh.NewClient(client, channels, requests)}, nil
}

// Run executes a script with sh and yields its output, trimmed.
func (s *Shell) Run(script string) (string, error) {
	session, err := s.client.NewSession()
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }()
	var out, errs bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(script), &out, &errs
	if err := session.Run("sh -eu -s"); err != nil {
		return strings.TrimSpace(out.String()), fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Close ends the login.
func (s *Shell) Close() { _ = s.client.Close() }
