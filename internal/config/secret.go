package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Secret says where a secret is: exactly one of a file, an environment
// variable or a systemd credential (systemd.exec(5), LoadCredential=). The
// value itself is never in the configuration.
type Secret struct {
	File       string `json:"file,omitempty" doc:"Path of a file that holds it."`
	Env        string `json:"env,omitempty" doc:"Name of the environment variable that holds it."`
	Credential string `json:"credential,omitempty" doc:"Name of a systemd credential (LoadCredential=)."`

	key string // the key path in the configuration, for messages
}

// What the messages and the schema say of secrets.
const (
	secretTitle = "secret"
	secretHint  = "write {file: PATH}, {env: NAME} or {credential: NAME}" //nolint:gosec // no secret
)

// UnmarshalYAML refuses a secret written into the file, without repeating it.
func (s *Secret) UnmarshalYAML(node ast.Node) error {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		return refuse(node, "a secret must not be written into the configuration", secretHint)
	}
	for values := mapping.MapRange(); values.Next(); {
		text, ok := values.Value().(*ast.StringNode)
		if !ok {
			return refuse(values.Value(), "the place of a secret is text", secretHint)
		}
		switch values.Key().String() {
		case "file":
			s.File = text.Value
		case "env":
			s.Env = text.Value
		case "credential":
			s.Credential = text.Value
		}
	}
	if count(s.File != "", s.Env != "", s.Credential != "") != 1 {
		return refuse(node, "a secret has exactly one place", secretHint)
	}
	return nil
}

// Schema describes a secret to editors.
func (*Secret) Schema(huma.Registry) *huma.Schema {
	place := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, MinLength: new(1), Description: doc}
	}
	return &huma.Schema{
		Title: secretTitle,
		Type:  huma.TypeObject, MinProperties: new(1), MaxProperties: new(1), AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"file":       place("Path of a file that holds it."),
			"env":        place("Name of the environment variable that holds it."),
			"credential": place("Name of a systemd credential (LoadCredential=)."),
		},
	}
}

// Value reads the secret and cuts off white space at its ends. Errors:
// CodeInvalid, naming the key, the place and what to do; never the value.
func (s *Secret) Value() (string, error) {
	text, err := s.read()
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fleet.Errorf(fleet.CodeInvalid, "%s: %s is empty", s.key, s.place()).WithHint("write the secret there, or correct %s", s.key)
	}
	return text, nil
}

// Bytes reads the secret as it is: keys end in a newline.
func (s *Secret) Bytes() ([]byte, error) {
	text, err := s.Value()
	if err != nil {
		return nil, err
	}
	return []byte(text + "\n"), nil
}

func (s *Secret) read() (string, error) {
	if s.Env != "" {
		text, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fleet.Errorf(fleet.CodeInvalid, "%s: %s is not set", s.key, s.place()).WithHint("set it in the environment of sluice, or correct %s", s.key)
		}
		return text, nil
	}
	path := s.File
	if s.Credential != "" {
		dir := os.Getenv("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", fleet.Errorf(fleet.CodeInvalid, "%s: %s cannot be read: $CREDENTIALS_DIRECTORY is not set", s.key, s.place()).
				WithHint("run under systemd with LoadCredential=%s:PATH, or use {file: PATH}", s.Credential)
		}
		path = filepath.Join(dir, filepath.Base(s.Credential))
	}
	data, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own
	if errors.Is(err, fs.ErrNotExist) {
		return "", fleet.Errorf(fleet.CodeInvalid, "%s: %s cannot be read: %w", s.key, s.place(), cause(err)).
			WithHint("write the secret there, readable by the user that runs sluice (uid %d), or correct %s", os.Geteuid(), s.key)
	}
	if err != nil {
		return "", fleet.Errorf(fleet.CodeInvalid, "%s: %s cannot be read: %w", s.key, s.place(), cause(err)).
			WithHint("give the user that runs sluice (uid %d) read access to it, or correct %s", os.Geteuid(), s.key)
	}
	return string(data), nil
}

// place names where the secret is.
func (s *Secret) place() string {
	switch {
	case s.File != "":
		return "file " + s.File
	case s.Env != "":
		return "environment variable " + s.Env
	default:
		return "systemd credential " + s.Credential
	}
}

// cause drops the path from an error of os: the message names it already.
func cause(err error) error {
	if inner := unwrapAll(err); inner != nil {
		return inner
	}
	return err
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error }) //nolint:errorlint // unwraps one step
		if !ok {
			return err
		}
		inner := u.Unwrap()
		if inner == nil {
			return err
		}
		err = inner
	}
}

func count(facts ...bool) int {
	n := 0
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

// Key is where in the configuration the secret is named.
func (s *Secret) Key() string { return s.key }
