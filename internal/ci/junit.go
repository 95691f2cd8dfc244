package ci

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// junitSuites is the JUnit document, as much of it as GitLab reads
// (docs.gitlab.com/ci/testing/unit_test_reports).
type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Skipped *junitSkipped `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// junit has a case for each VM. It passes where the VM alone would make the
// exit status 0; an error is a VM of which the job cannot tell.
func (r Report) junit() ([]byte, error) {
	suite := junitSuite{Name: "sluice recreate " + r.Fleet, Tests: len(r.Cases)}
	var total time.Duration
	for _, c := range r.Cases {
		total += c.Took
		suite.add(r.Fleet, c)
	}
	suite.Time = seconds(total)
	body, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInternal, "the JUnit report cannot be rendered: %w", err)
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}

func (s *junitSuite) add(fleetName string, c Case) {
	out := junitCase{Class: fleetName, Name: c.VM, Time: seconds(c.Took)}
	text := strings.Join(append([]string{c.Said}, c.Reasons...), "\n")
	if c.URL != "" {
		text += "\nsee " + c.URL
	}
	problem := &junitProblem{Message: c.Said, Type: string(c.State), Text: text}
	switch {
	case c.Broken:
		out.Error = problem
		s.Errors++
	case c.State == StateSucceeded:
		out.Out = text
	case c.State == StateRunning:
		out.Skipped, out.Out = &junitSkipped{Message: c.Said}, text
		s.Skipped++
	default:
		out.Failure = problem
		s.Failures++
	}
	s.Cases = append(s.Cases, out)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
