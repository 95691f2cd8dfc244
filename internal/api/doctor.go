package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/doctor"
)

type doctorInput struct {
	Fleet string   `path:"fleet" maxLength:"128"`
	VMs   []string `query:"vm" doc:"Only these VMs; none = all."`
}

type doctorOutput struct{ Body doctor.Report }

func (s *Server) doctor() {
	register(s, huma.Operation{
		OperationID: "examine", Method: http.MethodGet, Path: "/api/v1/fleets/{fleet}/doctor",
		Summary: "Examine a fleet: reach, units, sudo, identity; changes nothing",
		Errors:  []int{http.StatusNotFound},
	}, s.examine)
}

func (s *Server) examine(c *call, in *doctorInput) (*doctorOutput, error) {
	report, err := s.Doctor.Examine(c, in.Fleet, in.VMs)
	if err != nil {
		return nil, err
	}
	return &doctorOutput{Body: report}, nil
}
