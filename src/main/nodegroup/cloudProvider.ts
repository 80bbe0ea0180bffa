/**
 * The cloud provider `externalgrpc` over the node groups of a local cluster (L5): its methods by upstream's protocol. What cannot be done is answered with
 * UNKNOWN and the words of upstream's simulated provider; prices are not implemented. Upstream: cluster-autoscaler/cloudprovider/externalgrpc, cloudprovider/kwok (1.36).
 */
import type { JsonObject } from '#api/machinery/objects'
import { encodeMessage } from '#api/protobuf/encode'
import { schemaFor } from '#api/schema/builtIn'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { ServiceImplementation } from '#grpc/grpcService'
import { externalGrpcProto, externalGrpcService } from '#grpc/proto/externalGrpc'
import type { ClusterState } from '../localCluster/clusterState.ts'
import { groupOf } from '../localCluster/nodeGroupPlan.ts'
import { groupNode, type NodeGroup, providerIdOf } from '../localCluster/simulatedPlan.ts'
import { decreaseTargetSize, deleteNodes, increaseSize } from './changeGroup.ts'
import type { ClusterGroups } from './clusterGroups.ts'
import { templateNode } from './templateNode.ts'

export interface CloudProviderDeps {
  readonly groups: ClusterGroups
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

/** A node as the autoscaler describes it. An instance without a Node has its providerID as name, too. */
interface GivenNode {
  readonly providerID: string
  readonly name: string
}

interface OfGroup {
  readonly id: string
}

interface Resize extends OfGroup {
  readonly delta: number
}

/** The service, for a gRPC server. */
export function cloudProviderService({ groups, clock, log }: CloudProviderDeps): ServiceImplementation {
  const index = lastIndex()
  return {
    proto: externalGrpcProto,
    service: externalGrpcService,
    methods: {
      NodeGroups: async () => ({ nodeGroups: ((await groups.state()).nodeGroups ?? []).map(shown) }),
      NodeGroupForNode: async ({ node }: { readonly node: GivenNode | null }) => {
        if (node === null) throw new Error('request fields were nil')
        const state = await groups.state()
        const group = index(state).get(instanceOf(state, node))
        return { nodeGroup: group ? shown(group) : {} }
      },
      GPULabel: () => ({ label: '' }),
      GetAvailableGPUTypes: () => ({}),
      Cleanup: () => ({}),
      Refresh: () => ({}),
      NodeGroupTargetSize: async ({ id }: OfGroup) => ({ targetSize: existing(await groups.state(), id).numbers.length }),
      NodeGroupNodes: ({ id }: OfGroup) => instances(groups, id),
      NodeGroupTemplateNodeInfo: async ({ id }: OfGroup) => {
        const state = await groups.state()
        return { nodeBytes: nodeBytes(templateNode(state, existing(state, id), clock.now())) }
      },
      NodeGroupGetOptions: async ({ id, defaults }: OfGroup & { readonly defaults: Buffer }) => {
        existing(await groups.state(), id)
        if (defaults.length === 0) throw new Error('request fields were nil')
        return { nodeGroupAutoscalingOptions: defaults }
      },
      NodeGroupIncreaseSize: ({ id, delta }: Resize) =>
        groups.change(async (change, probe) => increaseSize(change, probe, existing(change.state, id), delta, log)),
      NodeGroupDeleteNodes: ({ id, nodes }: OfGroup & { readonly nodes: readonly GivenNode[] }) =>
        groups.change(async (change, probe) => {
          const given = nodes.map((node) => ({ name: node.name, instance: instanceOf(change.state, node) }))
          return deleteNodes(change, probe, existing(change.state, id), given, log)
        }),
      NodeGroupDecreaseTargetSize: ({ id, delta }: Resize) =>
        groups.change(async (change, probe) => decreaseTargetSize(change, probe, existing(change.state, id), delta, log)),
    },
  }
}

const shown = ({ name, min, max }: NodeGroup) => ({ id: name, minSize: min, maxSize: max, debug: `${name} (${min}:${max})` })

function existing(state: ClusterState, id: string): NodeGroup {
  const group = groupOf(state, id)
  if (group) return group
  throw new Error(`NodeGroup ${JSON.stringify(id)}, not found`)
}

/** The providerID that the node has, or would have. */
const instanceOf = ({ name: cluster }: ClusterState, { providerID, name }: GivenNode) => (providerID === '' ? providerIdOf(cluster, name) : providerID)

type GroupIndex = ReadonlyMap<string, NodeGroup>

/** The groups by the providerID of each of their nodes; made again when the description is another one. */
function lastIndex(): (state: ClusterState) => GroupIndex {
  let last: { readonly state: ClusterState; readonly index: GroupIndex } | undefined
  return (state) => {
    if (last?.state === state) return last.index
    const index = new Map<string, NodeGroup>()
    for (const group of state.nodeGroups ?? []) {
      for (const number of group.numbers) index.set(groupNode(state.name, group, number).providerID ?? '', group)
    }
    last = { state, index }
    return index
  }
}

async function instances(groups: ClusterGroups, id: string): Promise<object> {
  const state = await groups.state()
  const group = existing(state, id)
  const there = await groups.registered(id)
  return {
    instances: group.numbers.map((number) => {
      const { name, providerID } = groupNode(state.name, group, number)
      return { id: providerID, status: { instanceState: there.has(name) ? 'instanceRunning' : 'instanceCreating', errorInfo: {} } }
    }),
  }
}

/** As Go's `Marshal` of a Node. */
function nodeBytes(node: object): Uint8Array {
  const schema = schemaFor('', 'v1', 'Node')
  if (!schema) throw new Error('no kind "Node" is registered for version "v1"')
  return encodeMessage(node as JsonObject, schema)
}
