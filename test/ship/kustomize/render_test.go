package kustomize_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const deploy = "../../../deploy/kustomize/"

// rendered is what an overlay makes, by kind; strictly decoded.
type rendered struct {
	deployments []*appsv1.Deployment
	services    []*corev1.Service
	claims      []*corev1.PersistentVolumeClaim
	configs     []*corev1.ConfigMap
	policies    []*networkingv1.NetworkPolicy
}

func render(t *testing.T, dir string) *rendered {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), deploy+dir)
	if err != nil {
		t.Fatal(err)
	}
	all := &rendered{}
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", resource.CurId(), err, text)
		}
		switch o := object.(type) {
		case *appsv1.Deployment:
			all.deployments = append(all.deployments, o)
		case *corev1.Service:
			all.services = append(all.services, o)
		case *corev1.PersistentVolumeClaim:
			all.claims = append(all.claims, o)
		case *corev1.ConfigMap:
			all.configs = append(all.configs, o)
		case *networkingv1.NetworkPolicy:
			all.policies = append(all.policies, o)
		default:
			t.Errorf("nobody looks at %s", resource.CurId())
		}
	}
	return all
}

// decode refuses unknown and repeated fields, and kinds that it does not know.
func decode(text []byte) (runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode(text, nil, nil)
	return object, err
}

func TestDecoderRefusesWhatKubernetesDoesNotKnow(t *testing.T) {
	good := "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"
	if _, err := decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		good + "spec2: {}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: 80}\n",
		"apiVersion: v1\nkind: Servize\nmetadata: {name: a}\n",
	} {
		if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("it took\n%s", bad)
		}
	}
}
