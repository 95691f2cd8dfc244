package runnerhost

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// answer is what a script printed between its marks: lines KEY=VALUE. A key
// that comes more than once is a list.
type answer map[string][]string

var (
	errNoAnswer  = errors.New("the host's answer has no beginning")
	errHalf      = errors.New("the host's answer has no end")
	errMalformed = errors.New("the host's answer holds a line that is none of the script's")
)

var keyPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*$`)

// parseAnswer reads what stands between the marks. What a login prints before
// or after them is ignored; what stands between them must be the script's.
func parseAnswer(stdout []byte, nonce string) (answer, error) {
	begin, end := []byte("\nsluice-begin "+nonce+"\n"), []byte("\nsluice-end "+nonce+"\n")
	_, body, ok := bytes.Cut(append([]byte("\n"), stdout...), begin)
	if !ok {
		return nil, errNoAnswer
	}
	body, _, ok = bytes.Cut(append([]byte("\n"), body...), end)
	if !ok {
		return nil, errHalf
	}
	a := answer{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !keyPattern.MatchString(key) {
			return nil, errMalformed
		}
		a[key] = append(a[key], value)
	}
	return a, nil
}

// one is the value of a key that must come once: "" if it came more often.
func (a answer) one(key string) string {
	if len(a[key]) != 1 {
		return ""
	}
	return a[key][0]
}

// number is one's value as a number, and whether it is one.
func (a answer) number(key string) (int64, bool) {
	n, err := strconv.ParseInt(a.one(key), 10, 64)
	return n, err == nil
}

func (a answer) yes(key string) bool { return a.one(key) == "yes" }
