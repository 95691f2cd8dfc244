package kustomize_test

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// each runs a test for the base and for what the example makes of it.
func each(t *testing.T, test func(t *testing.T, all *rendered, pod corev1.PodSpec, c corev1.Container)) {
	for _, dir := range []string{"base", "example"} {
		t.Run(dir, func(t *testing.T) {
			all := render(t, dir)
			if len(all.deployments) != 1 || len(all.deployments[0].Spec.Template.Spec.Containers) != 1 {
				t.Fatalf("%d deployments", len(all.deployments))
			}
			pod := all.deployments[0].Spec.Template.Spec
			test(t, all, pod, pod.Containers[0])
		})
	}
}

func TestThereIsOneEngineAtATimeOnAVolumeThatStays(t *testing.T) {
	each(t, func(t *testing.T, all *rendered, pod corev1.PodSpec, c corev1.Container) {
		spec := all.deployments[0].Spec
		if spec.Replicas == nil || *spec.Replicas != 1 || spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("replicas %v, strategy %q", spec.Replicas, spec.Strategy.Type)
		}
		state := mounted(pod, c, "/var/lib/sluice")
		if len(all.claims) != 1 || state == nil || state.PersistentVolumeClaim == nil || state.PersistentVolumeClaim.ClaimName != all.claims[0].Name {
			t.Errorf("the journal is on %+v, the claims are %+v", state, all.claims)
		}
		if env(c)["SLUICE_STORE_SQLITE"] != "/var/lib/sluice/sluice.db" {
			t.Errorf("the journal is %q", env(c)["SLUICE_STORE_SQLITE"])
		}
	})
}

func TestThePodMayNothingThatItDoesNotNeed(t *testing.T) {
	each(t, func(t *testing.T, _ *rendered, pod corev1.PodSpec, c corev1.Container) {
		if on := pod.AutomountServiceAccountToken; on == nil || *on {
			t.Error("it gets a token for the cluster")
		}
		p, s := pod.SecurityContext, c.SecurityContext
		if p.RunAsNonRoot == nil || !*p.RunAsNonRoot || p.SeccompProfile == nil || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("the pod's security context is %+v", p)
		}
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("the container's security context is %+v", s)
		}
		if s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) != 0 {
			t.Errorf("capabilities %+v", s.Capabilities)
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || (s.Privileged != nil && *s.Privileged) {
			t.Error("it shares what is the host's")
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				t.Errorf("volume %s is the host's", v.Name)
			}
		}
	})
}

func TestThePodsUserIsTheImagesAndOwnsTheVolume(t *testing.T) {
	dockerfile := read(t, "../../../deploy/docker/Dockerfile")
	each(t, func(t *testing.T, _ *rendered, pod corev1.PodSpec, _ corev1.Container) {
		const user = 65532
		for name, id := range map[string]*int64{"runAsUser": pod.SecurityContext.RunAsUser, "runAsGroup": pod.SecurityContext.RunAsGroup, "fsGroup": pod.SecurityContext.FSGroup} {
			if id == nil || *id != user {
				t.Errorf("%s is %v", name, id)
			}
		}
		if !strings.Contains(dockerfile, "\nUSER 65532:65532\n") {
			t.Error("the image's user is another one")
		}
	})
}

func TestProbesServiceAndPolicyLookWhereItListens(t *testing.T) {
	each(t, func(t *testing.T, all *rendered, _ corev1.PodSpec, c corev1.Container) {
		if env(c)["SLUICE_SERVER_LISTEN"] != ":8420" || len(c.Ports) != 1 || c.Ports[0].ContainerPort != 8420 {
			t.Fatalf("it listens on %q, ports %+v", env(c)["SLUICE_SERVER_LISTEN"], c.Ports)
		}
		port := c.Ports[0].Name
		for path, probes := range map[string][]*corev1.Probe{"/readyz": {c.StartupProbe, c.ReadinessProbe}, "/livez": {c.LivenessProbe}} {
			for _, probe := range probes {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != port {
					t.Errorf("the probe of %s is %+v", path, probe)
				}
			}
		}
		if len(all.services) != 1 || all.services[0].Spec.Ports[0].TargetPort.String() != port {
			t.Errorf("services %+v", all.services)
		}
		if len(all.policies) != 1 || all.policies[0].Spec.Ingress[0].Ports[0].Port.String() != port {
			t.Errorf("policies %+v", all.policies)
		}
		labels := all.deployments[0].Spec.Template.Labels
		for name, value := range all.services[0].Spec.Selector {
			if labels[name] != value {
				t.Errorf("the service looks for %s=%s among %v", name, value, labels)
			}
		}
	})
}

func TestSecretsComeFromASecretAndTheConfigurationFromAConfigMap(t *testing.T) {
	each(t, func(t *testing.T, all *rendered, pod corev1.PodSpec, c corev1.Container) {
		secrets, config := mounted(pod, c, "/run/secrets/sluice"), mounted(pod, c, "/etc/sluice")
		if secrets == nil || secrets.Secret == nil || config == nil || config.ConfigMap == nil {
			t.Fatalf("secrets %+v, configuration %+v", secrets, config)
		}
		for _, made := range all.configs {
			if config.ConfigMap.Name != made.Name || made.Name == "sluice-config" {
				t.Errorf("the pod reads %s, and %s was made: a change would start no new pod", config.ConfigMap.Name, made.Name)
			}
		}
	})
	example := render(t, "example").configs
	if len(example) != 1 || example[0].Data["sluice.yaml"] != read(t, deploy+"example/sluice.yaml") {
		t.Errorf("the example's configuration is %+v", example)
	}
}

// mounted yields the volume that the container has at path.
func mounted(pod corev1.PodSpec, c corev1.Container, path string) *corev1.Volume {
	for _, m := range c.VolumeMounts {
		for i, v := range pod.Volumes {
			if m.MountPath == path && v.Name == m.Name {
				return &pod.Volumes[i]
			}
		}
	}
	return nil
}

func env(c corev1.Container) map[string]string {
	all := map[string]string{}
	for _, e := range c.Env {
		all[e.Name] = e.Value
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
