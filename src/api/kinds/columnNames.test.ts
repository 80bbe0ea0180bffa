/** The columns that `kubectl get` shows of every kind; a star marks columns of `-o wide`. Upstream: pkg/printers/internalversion/printers.go (v1.36). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategies } from './index.ts'

const wanted: Readonly<Record<string, string>> = {
  Namespace: 'Name, Status, Age',
  Node: 'Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*',
  Pod: 'Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*',
  Service: 'Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*',
  Endpoints: 'Name, Endpoints, Age',
  ServiceAccount: 'Name, Secrets, Age',
  Secret: 'Name, Type, Data, Age',
  ConfigMap: 'Name, Data, Age',
  Event: 'Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*',
  PodTemplate: 'Name, Containers, Images, Pod Labels',
  ReplicationController: 'Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*',
  ResourceQuota: 'Name, Request, Limit, Age',
  LimitRange: 'Name, Created At',
  PersistentVolume: 'Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*',
  PersistentVolumeClaim: 'Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*',
  ComponentStatus: 'Name, Status, Message, Error',
  Deployment: 'Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*',
  ReplicaSet: 'Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*',
  StatefulSet: 'Name, Ready, Age, Containers*, Images*',
  DaemonSet: 'Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age, Containers*, Images*, Selector*',
  ControllerRevision: 'Name, Controller, Revision, Age',
  Job: 'Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*',
  CronJob: 'Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age, Containers*, Images*, Selector*',
  HorizontalPodAutoscaler: 'Name, Reference, Targets, MinPods, MaxPods, Replicas, Age',
  PodDisruptionBudget: 'Name, Min Available, Max Unavailable, Allowed Disruptions, Age',
  CertificateSigningRequest: 'Name, Age, SignerName, Requestor, RequestedDuration, Condition',
  ClusterTrustBundle: 'Name, SignerName',
  PodCertificateRequest: 'Name, PodName, ServiceAccountName, NodeName, SignerName, State, UnverifiedUserAnnotations',
  Lease: 'Name, Holder, Age',
  LeaseCandidate: 'Name, LeaseName, BinaryVersion, EmulationVersion, Age',
  EndpointSlice: 'Name, AddressType, Ports, Endpoints, Age',
  Ingress: 'Name, Class, Hosts, Address, Ports, Age',
  IngressClass: 'Name, Controller, Parameters, Age',
  NetworkPolicy: 'Name, Pod-Selector, Age',
  ServiceCIDR: 'Name, CIDRs, Age',
  IPAddress: 'Name, ParentRef',
  RuntimeClass: 'Name, Handler, Age',
  Role: 'Name, Created At',
  ClusterRole: 'Name, Created At',
  RoleBinding: 'Name, Role, Age, Users*, Groups*, ServiceAccounts*',
  ClusterRoleBinding: 'Name, Role, Age, Users*, Groups*, ServiceAccounts*',
  PriorityClass: 'Name, Value, Global-Default, Age, PreemptionPolicy',
  PodGroup: 'Name, Age',
  Workload: 'Name, Age',
  StorageClass: 'Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age',
  VolumeAttributesClass: 'Name, DriverName, Age',
  CSIDriver: 'Name, AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age',
  CSINode: 'Name, Drivers, Age',
  CSIStorageCapacity: 'Name, StorageClassName, Capacity',
  VolumeAttachment: 'Name, Attacher, PV, Node, Attached, Age',
  DeviceClass: 'Name, Age',
  ResourceClaim: 'Name, State, Age',
  ResourceClaimTemplate: 'Name, Age',
  ResourceSlice: 'Name, Node, Driver, Pool, Age',
  DeviceTaintRule: 'Name, Age',
  ResourcePoolStatusRequest: 'Name, Age',
  StorageVersionMigration: 'Name, Resource',
  FlowSchema: 'Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL',
  PriorityLevelConfiguration: 'Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age',
  StorageVersion: 'Name, CommonEncodingVersion, StorageVersions, Age',
  APIService: 'Name, Service, Available, Age',
  CustomResourceDefinition: 'Name, Created At',
  MutatingWebhookConfiguration: 'Name, Webhooks, Age',
  ValidatingWebhookConfiguration: 'Name, Webhooks, Age',
  ValidatingAdmissionPolicy: 'Name, Validations, ParamKind, Age',
  ValidatingAdmissionPolicyBinding: 'Name, PolicyName, ParamRef, Age',
  MutatingAdmissionPolicy: 'Name, Mutations, ParamKind, Age',
  MutatingAdmissionPolicyBinding: 'Name, PolicyName, ParamRef, Age',
}

for (const { kind, columns = [] } of strategies)
  test(`EXP-03 columns of ${kind}`, () => {
    assert.equal(columns.map(({ name, priority }) => (priority ? `${name}*` : name)).join(', '), wanted[kind])
  })

test('EXP-03 the table names no kind that is not there', () => {
  const kinds = new Set(strategies.map(({ kind }) => kind))
  assert.deepEqual(
    Object.keys(wanted).filter((kind) => !kinds.has(kind)),
    [],
  )
})
