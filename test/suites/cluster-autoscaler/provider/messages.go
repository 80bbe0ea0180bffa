// Package provider is a client of the cloud provider externalgrpc, written from upstream's published externalgrpc.proto (cluster-autoscaler 1.36) by hand.
package provider

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	text  = descriptorpb.FieldDescriptorProto_TYPE_STRING
	whole = descriptorpb.FieldDescriptorProto_TYPE_INT32
	bytes = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	real  = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
)

// packageName is that of the service and of its messages.
const packageName = "clusterautoscaler.cloudprovider.v1.externalgrpc"

func field(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
}

func message(name string, number int32, of string) *descriptorpb.FieldDescriptorProto {
	made := field(name, number, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
	made.TypeName = proto.String("." + packageName + "." + of)
	return made
}

func repeated(made *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
	made.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	return made
}

type fields = []*descriptorpb.FieldDescriptorProto

// messages holds what this client sends and reads; other fields of upstream's messages stay unknown fields.
var messages = map[string]fields{
	"Empty":        {},
	"NodeGroup":    {field("id", 1, text), field("minSize", 2, whole), field("maxSize", 3, whole)},
	"Node":         {field("providerID", 1, text), field("name", 2, text)},
	"GroupList":    {repeated(message("nodeGroups", 1, "NodeGroup"))},
	"GroupOfNode":  {message("nodeGroup", 1, "NodeGroup")},
	"NodeRequest":  {message("node", 1, "Node")},
	"GroupRequest": {field("id", 1, text)},
	"Resize":       {field("delta", 1, whole), field("id", 2, text)},
	"Deletion":     {repeated(message("nodes", 1, "Node")), field("id", 2, text)},
	"TargetSize":   {field("targetSize", 1, whole)},
	"Status":       {field("instanceState", 1, whole)},
	"Instance":     {field("id", 1, text), message("status", 2, "Status")},
	"InstanceList": {repeated(message("instances", 1, "Instance"))},
	"Template":     {field("nodeBytes", 2, bytes)},
	"Options":      {field("scaleDownUtilizationThreshold", 1, real)},
	"OptionsOf":    {field("id", 1, text), message("defaults", 2, "Options")},
	"OptionsFound": {message("options", 1, "Options")},
}

var file = func() protoreflect.FileDescriptor {
	described := &descriptorpb.FileDescriptorProto{Name: proto.String("externalgrpc.proto"), Package: proto.String(packageName), Syntax: proto.String("proto3")}
	for name, of := range messages {
		described.MessageType = append(described.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(name), Field: of})
	}
	made, err := protodesc.NewFile(described, nil)
	if err != nil {
		panic(err)
	}
	return made
}()

func newMessage(name string) *dynamicpb.Message {
	return dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(name)))
}

func set(in protoreflect.Message, name string, value any) {
	in.Set(in.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(value))
}

func get(in protoreflect.Message, name string) protoreflect.Value {
	return in.Get(in.Descriptor().Fields().ByName(protoreflect.Name(name)))
}
