package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// account is the name of the controller's service account, and user is its user name.
	account = "operator"
	user    = "system:serviceaccount:" + namespace + ":" + account
	// tokenSeconds is how long the account's token is valid. It must be longer than any measurement.
	tokenSeconds = 24 * 60 * 60
	// resourcesPerNode is the number of resources for each simulated node. A node runs up to 1000 pods, so each resource
	// can have five.
	resourcesPerNode = 200
)

// ground is the control plane for the measurement with one number of resources. It has the stage's CRDs and roles.
type ground struct {
	plan *plan
	// program is the path of the controller.
	program string
	cluster *testcluster.Cluster
	client  client.WithWatch
	audit   *auditLog
	// dir contains the audit policy and log, the kubeconfig and the controller's logs.
	dir        string
	kubeconfig string
	// resource is the API resource of the plan's kind.
	resource schema.GroupResource
	// ownedKinds are the kinds of objects that have a controlling owner, such as pods. See children.
	ownedKinds []schema.GroupVersionKind
}

// prepare starts the control plane, grants the operator its permissions, and creates the objects that the load needs.
// Call close afterwards, even after an error.
func (g *ground) prepare(ctx context.Context, stage string, resources int) error {
	var err error
	if g.dir, err = os.MkdirTemp("", "workshop-load-"); err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	policy, log := filepath.Join(g.dir, "audit-policy.yaml"), filepath.Join(g.dir, "audit.log")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, user), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	g.audit = newAuditLog(log)
	g.cluster = &testcluster.Cluster{
		CRDs:  []string{filepath.Join(stage, "config", "crd", "bases")},
		Nodes: 2 + resources/resourcesPerNode,
		APIServerFlags: map[string]string{
			"audit-policy-file": policy, "audit-log-path": log,
			"audit-log-maxsize": "0", // one file, however long
		},
	}
	if err := g.cluster.Start(ctx); err != nil {
		return err
	}
	if g.client, err = client.NewWithWatch(g.cluster.Config, client.Options{}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := g.findResource(); err != nil {
		return err
	}
	if err := g.grant(ctx, stage); err != nil {
		return err
	}
	if err := g.writeKubeconfig(ctx); err != nil {
		return err
	}
	for _, object := range g.plan.Needs {
		needed := &unstructured.Unstructured{Object: object}
		needed.SetNamespace(namespace)
		if err := g.create(ctx, needed); err != nil {
			return err
		}
	}
	return g.tryResource(ctx)
}

// tryResource makes the API server check a resource without storing it. For 2 s after a kind is defined, the server
// delays each creation by 2 s. This request absorbs the delay, which would otherwise be measured.
func (g *ground) tryResource(ctx context.Context) error {
	strict := client.FieldValidation(metav1.FieldValidationStrict)
	if err := g.client.Create(ctx, g.plan.object(1), client.DryRunAll, strict); err != nil {
		return fmt.Errorf("the API server refuses the resource of %s: %w", planFile, err)
	}
	return nil
}

// close stops the control plane and removes its files.
func (g *ground) close() error {
	var errs []error
	if g.cluster != nil {
		errs = append(errs, g.cluster.Stop())
	}
	if g.dir != "" {
		errs = append(errs, os.RemoveAll(g.dir))
	}
	return errors.Join(errs...)
}

func (g *ground) findResource() error {
	kind := g.plan.object(1).GroupVersionKind()
	mapping, err := g.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the kind of the resource in %s, which config/crd/bases must define: %w", planFile, err)
	}
	g.resource = mapping.Resource.GroupResource()
	return nil
}

func (g *ground) create(ctx context.Context, object client.Object) error {
	if err := g.client.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}

// grant creates the service account and the stage's roles, and binds the roles to the account. A Role and its
// RoleBinding get the namespace of the resources. A ClusterRole gets a ClusterRoleBinding.
func (g *ground) grant(ctx context.Context, stage string) error {
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := g.create(ctx, made); err != nil {
		return err
	}
	folder := filepath.Join(stage, "config", "rbac")
	granted := 0
	for _, name := range []string{"role.yaml", "leader_election_role.yaml"} {
		roles, err := readRoles(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, role := range roles {
			if err := g.grantRole(ctx, role); err != nil {
				return err
			}
			granted++
		}
	}
	if granted == 0 {
		return fmt.Errorf("%s contains no roles, so the controller could do nothing", folder)
	}
	return nil
}

func (g *ground) grantRole(ctx context.Context, role *unstructured.Unstructured) error {
	meta := metav1.ObjectMeta{Name: role.GetName()}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
	if role.GetKind() == "Role" {
		meta.Namespace = namespace
		role.SetNamespace(namespace)
		binding = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
	}
	if err := g.create(ctx, role); err != nil {
		return err
	}
	return g.create(ctx, binding)
}

// readRoles returns the Roles and ClusterRoles in a file.
func readRoles(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the roles: %w", err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var roles []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return roles, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if object.GetKind() == "ClusterRole" || object.GetKind() == "Role" {
			roles = append(roles, object)
		}
	}
}

// writeKubeconfig writes the controller's kubeconfig, with a token for its service account.
func (g *ground) writeKubeconfig(ctx context.Context) error {
	seconds := int64(tokenSeconds)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := g.client.SubResource("token").Create(ctx, holder, token); err != nil {
		return fmt.Errorf("make a token for the controller: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["load"] = &clientcmdapi.Cluster{Server: g.cluster.Config.Host, CertificateAuthorityData: g.cluster.Config.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["load"] = &clientcmdapi.Context{Cluster: "load", AuthInfo: account, Namespace: namespace}
	config.CurrentContext = "load"
	g.kubeconfig = filepath.Join(g.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, g.kubeconfig); err != nil {
		return fmt.Errorf("write the controller's kubeconfig: %w", err)
	}
	return nil
}

// run starts the controller and waits until it watches the resources.
func (g *ground) run(ctx context.Context, name string) (*operator, error) {
	since := time.Now()
	running, err := startOperator(g.program, g.kubeconfig, filepath.Join(g.dir, name+".log"), g.plan.Args)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = running.wait(timed, func() (bool, error) {
		err := g.audit.read()
		return err == nil && g.audit.watches(g.resource.Group, g.resource.Resource, since), err
	})
	if err == nil {
		return running, nil
	}
	if timed.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the controller does not watch %s even %s after its start; its last lines:\n%s", g.resource, startTimeout, running.lastLines())
	}
	return nil, errors.Join(err, running.stop())
}
