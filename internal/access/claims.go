package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Claims are what a verified id_token says of its job (facts/gitlab.md section
// 6). Values keep the names exactly as GitLab writes them: a claim in another
// case is another claim.
type Claims struct {
	Issuer  string
	ID      string // jti
	Expires time.Time
	Project int64
	Job     int64
	Runner  int64 // the runner entry that runs the job; 0 = not said

	values map[string]any
}

// Name is who asks, for the journal.
func (c *Claims) Name() string {
	name := "pipeline"
	if path := c.one("project_path"); path != "" {
		name += " " + plain(path)
	} else {
		name += fmt.Sprintf(" of project %d", c.Project)
	}
	if ref := c.one("ref"); ref != "" {
		name += "@" + plain(ref)
	}
	name += fmt.Sprintf(" job %d", c.Job)
	if login := c.one("user_login"); login != "" {
		name += " (" + plain(login) + ")"
	}
	return name
}

// Caller is what limits count requests by: the project.
func (c *Claims) Caller() string { return fmt.Sprintf("project %d of %s", c.Project, c.Issuer) }

// Scope keeps the Idempotency-Keys of one project apart from everybody else's.
func (c *Claims) Scope() string { return c.Caller() + "\n" }

// Hosted says whether the job runs on a runner of GitLab's own.
func (c *Claims) Hosted() bool { return c.one("runner_environment") == "gitlab-hosted" }

// texts yields a claim's values as text: GitLab writes ids as text, runner_id
// as a number, groups_direct as a list. A boolean or an object is no text and
// matches nothing: ref_protected is "true", never true.
func (c *Claims) texts(name string) []string {
	switch v := c.values[name].(type) {
	case string:
		return []string{v}
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return []string{v.String()}
		}
	case []any:
		var list []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				list = append(list, text)
			}
		}
		return list
	}
	return nil
}

func (c *Claims) one(name string) string {
	if list := c.texts(name); len(list) == 1 {
		return list[0]
	}
	return ""
}

// number is a claim that must be a positive whole number, as text or as one.
func (c *Claims) number(name string) (int64, error) {
	text := c.one(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%s is no positive number", name)
	}
	return n, nil
}

// moment is a NumericDate (RFC 7519 section 2), whole seconds as GitLab writes
// it. ok is false if it is missing or none.
func (c *Claims) moment(name string) (at time.Time, ok bool) {
	number, isNumber := c.values[name].(json.Number)
	if !isNumber {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || seconds <= 0 || seconds > lastSecond {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}

// lastSecond is the end of the year 9999: later ones overflow what follows.
const lastSecond = 253402300799

// maxID bounds a jti, in bytes: it is stored.
const maxID = 255

// readClaims reads the payload of an id_token. Its errors name the claim that
// is missing or wrong, and no value.
func readClaims(payload []byte) (*Claims, error) {
	values, err := object(payload)
	if err != nil {
		return nil, err
	}
	c := &Claims{values: values, Issuer: text(values["iss"]), ID: text(values["jti"])}
	if c.ID == "" || len(c.ID) > maxID {
		return nil, errors.New("jti is missing, empty or too long")
	}
	if c.Project, err = c.number("project_id"); err != nil {
		return nil, err
	}
	if c.Job, err = c.number("job_id"); err != nil {
		return nil, err
	}
	if _, there := values["runner_id"]; there && values["runner_id"] != nil {
		if c.Runner, err = c.number("runner_id"); err != nil {
			return nil, err
		}
	}
	var ok bool
	if c.Expires, ok = c.moment("exp"); !ok {
		return nil, errors.New("exp is missing or no time")
	}
	return c, nil
}

// object reads one JSON object, numbers as they were written.
func object(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil || values == nil {
		return nil, errors.New("it is no JSON object")
	}
	if decoder.More() {
		return nil, errors.New("something follows its JSON object")
	}
	return values, nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
