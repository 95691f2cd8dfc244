package exec

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/provider/providertest"
)

func TestTheToyCloudKeepsTheContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Setup {
		world, provider := newLab(t)
		return providertest.Setup{
			Machines: provider, World: world, Fleet: testFleet,
			Image: "newest", Exact: "toy-42", NoImage: "toy-none", Dependents: true,
		}
	})
}
