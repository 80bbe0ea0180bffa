package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// timeout is the default of upstream's client.
const timeout = 5 * time.Second

// Client asks a server of node groups.
type Client struct{ connection *grpc.ClientConn }

// Group is a node group with its limits.
type Group struct {
	ID       string
	Min, Max int
}

// Instance is a node of a group, registered or not.
type Instance struct {
	ID    string
	State int
}

// Connect reads upstream's file of --cloud-config.
func Connect(file string) (*Client, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config := struct{ Address, Key, Cert, Cacert string }{}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if config.Cert != "" {
		pair, err := tls.LoadX509KeyPair(config.Cert, config.Key)
		if err != nil {
			return nil, err
		}
		authorities, err := os.ReadFile(config.Cacert)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authorities)
		host, _, err := net.SplitHostPort(config.Address)
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(&tls.Config{ServerName: host, Certificates: []tls.Certificate{pair}, RootCAs: pool})
	}
	connection, err := grpc.NewClient(config.Address, grpc.WithTransportCredentials(transport))
	return &Client{connection}, err
}

// Call sends a message that fill completes, and gives the answer.
func (c *Client) Call(method, requestType, answerType string, fill func(protoreflect.Message)) (protoreflect.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, answer := newMessage(requestType), newMessage(answerType)
	fill(request)
	return answer, c.connection.Invoke(ctx, fmt.Sprintf("/%s.CloudProvider/%s", packageName, method), request, answer)
}

func nothing(protoreflect.Message) {}

func ofGroup(id string) func(protoreflect.Message) {
	return func(request protoreflect.Message) { set(request, "id", id) }
}

// Refresh comes before each loop.
func (c *Client) Refresh() error {
	_, err := c.Call("Refresh", "Empty", "Empty", nothing)
	return err
}

// Groups lists the node groups.
func (c *Client) Groups() ([]Group, error) {
	answer, err := c.Call("NodeGroups", "Empty", "GroupList", nothing)
	if err != nil {
		return nil, err
	}
	found := []Group{}
	list := get(answer, "nodeGroups").List()
	for at := range list.Len() {
		found = append(found, groupOf(list.Get(at).Message()))
	}
	return found, nil
}

func groupOf(message protoreflect.Message) Group {
	return Group{get(message, "id").String(), int(get(message, "minSize").Int()), int(get(message, "maxSize").Int())}
}

// GroupOf gives the name of a node's group; empty: none.
func (c *Client) GroupOf(node *corev1.Node) (string, error) {
	answer, err := c.Call("NodeGroupForNode", "NodeRequest", "GroupOfNode", func(request protoreflect.Message) {
		describe(request.Mutable(request.Descriptor().Fields().ByName("node")).Message(), node)
	})
	if err != nil {
		return "", err
	}
	return groupOf(get(answer, "nodeGroup").Message()).ID, nil
}

func describe(message protoreflect.Message, node *corev1.Node) {
	set(message, "providerID", node.Spec.ProviderID)
	set(message, "name", node.Name)
}

// TargetSize gives the size that the group is to have.
func (c *Client) TargetSize(group string) (int, error) {
	answer, err := c.Call("NodeGroupTargetSize", "GroupRequest", "TargetSize", ofGroup(group))
	return int(get(answer, "targetSize").Int()), err
}

// Increase adds nodes.
func (c *Client) Increase(group string, delta int) error {
	_, err := c.Call("NodeGroupIncreaseSize", "Resize", "Empty", resize(group, delta))
	return err
}

// DecreaseTarget takes back nodes that have not registered.
func (c *Client) DecreaseTarget(group string, delta int) error {
	_, err := c.Call("NodeGroupDecreaseTargetSize", "Resize", "Empty", resize(group, delta))
	return err
}

func resize(group string, delta int) func(protoreflect.Message) {
	return func(request protoreflect.Message) {
		set(request, "id", group)
		set(request, "delta", int32(delta))
	}
}

// Delete removes nodes.
func (c *Client) Delete(group string, nodes ...*corev1.Node) error {
	_, err := c.Call("NodeGroupDeleteNodes", "Deletion", "Empty", func(request protoreflect.Message) {
		set(request, "id", group)
		list := request.Mutable(request.Descriptor().Fields().ByName("nodes")).List()
		for _, node := range nodes {
			describe(list.AppendMutable().Message(), node)
		}
	})
	return err
}

// Instances lists the nodes of a group.
func (c *Client) Instances(group string) ([]Instance, error) {
	answer, err := c.Call("NodeGroupNodes", "GroupRequest", "InstanceList", ofGroup(group))
	if err != nil {
		return nil, err
	}
	found := []Instance{}
	list := get(answer, "instances").List()
	for at := range list.Len() {
		one := list.Get(at).Message()
		found = append(found, Instance{get(one, "id").String(), int(get(get(one, "status").Message(), "instanceState").Int())})
	}
	return found, nil
}

// Template gives the node that the group would get next.
func (c *Client) Template(group string) (*corev1.Node, error) {
	answer, err := c.Call("NodeGroupTemplateNodeInfo", "GroupRequest", "Template", ofGroup(group))
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	return node, node.Unmarshal(get(answer, "nodeBytes").Bytes())
}

// Threshold asks for the group's options with this one as default.
func (c *Client) Threshold(group string, byDefault float64) (float64, error) {
	answer, err := c.Call("NodeGroupGetOptions", "OptionsOf", "OptionsFound", func(request protoreflect.Message) {
		set(request, "id", group)
		set(request.Mutable(request.Descriptor().Fields().ByName("defaults")).Message(), "scaleDownUtilizationThreshold", byDefault)
	})
	return get(get(answer, "options").Message(), "scaleDownUtilizationThreshold").Float(), err
}
