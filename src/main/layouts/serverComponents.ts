/**
 * The other components of a local cluster's server process (L5): controllers, scheduler and simulated nodes, and the components that keep the agents,
 * routes and ports of real nodes. A module of its own, so that the API can be served before this code is read. Upstream has processes for them.
 */
import type { ApiServer } from '#apiserver/apiServer'
import { secretTokens } from '#apiserver/authn/secretTokens'
import type { UserInfo } from '#apiserver/core/request'
import type { Component } from '#base/component'
import { featureGateWarnings } from '#base/featureGates'
import { serviceCIDRs } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { createEventRecorder } from '#client/eventRecorder'
import { bootstrapSigner } from '#controllers/bootstrap/signer'
import { tokenCleaner } from '#controllers/bootstrap/tokenCleaner'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers, turnableFeatures } from '#controllers/index'
import { createExec } from '#host/exec'
import { inNetworkNamespace } from '#host/netns'
import { createNodeRoutes } from '#network/nodeRoutes'
import { schedulerConfigOf } from '#scheduler/config/configuration'
import type { Explainer } from '#scheduler/explain/explainer'
import { createConfigFile } from '../apiserver/configFile.ts'
import { readOptions } from '../apiserver/options/readOptions.ts'
import { hostPaths } from '../component/hostPaths.ts'
import { localControllerGroups, localSchedulerGroups } from '../component/options/local.ts'
import { schedulerComponent } from '../component/schedulerComponent.ts'
import { type AddressPlan, addressPlanOf } from '../localCluster/addressPlan.ts'
import type { ClusterPaths, ClusterState } from '../localCluster/clusterState.ts'
import { type LivePki, live } from '../pki/livePki.ts'
import type { Pki } from '../pki/pki.ts'
import { controlNetwork } from '../vnode/clusterNetwork.ts'
import { createAgents, renewAgentCertificates } from './agents.ts'
import { controlRoutes } from './controlRoutes.ts'
import { createLocalPorts } from './localPorts.ts'
import type { OwnKubelets } from './ownKubelets.ts'
import type { ProcessList } from './processList.ts'
import { ownProgram, type ProcessTools } from './processTools.ts'
import { createSimulatedNodes } from './simulatedNodes.ts'

/** A component's way into the API: in process, under its own name. */
function accessAs(server: ApiServer, user: UserInfo, tools: ProcessTools) {
  const client = createClient(server.transport(user, user.name))
  return { client, informers: createSharedInformerFactory(client, tools) }
}

const authenticated = 'system:authenticated'
/** The controllers' flags of a local cluster, before its user's own; as kubeadm does, bootstrap tokens sign the cluster's description and expire. */
const ownControllerArgs = ({ clusterCidr, serviceCidr }: AddressPlan) => [
  `--controllers=*,${bootstrapSigner.name},${tokenCleaner.name}`,
  '--allocate-node-cidrs=true',
  `--cluster-cidr=${clusterCidr}`,
  `--service-cluster-ip-range=${serviceCidr}`,
]

interface ControlPlaneParts {
  readonly pki: Pki
  readonly explainer: Explainer
  readonly state: ClusterState
}

/** Controllers and scheduler, by the flags that the cluster was made with. @throws Error when one of them cannot be read. */
export async function controlPlane(server: ApiServer, tools: ProcessTools, { pki, explainer, state }: ControlPlaneParts): Promise<Component[]> {
  const context = { file: (name: string) => createConfigFile(name, tools.clock) }
  const {
    controllers: told,
    volumes,
    signing,
    features,
  } = await readOptions(localControllerGroups, [...ownControllerArgs(addressPlanOf(state)), ...(state.controllerManagerArgs ?? [])], context)
  const { scheduler, features: schedulerFeatures } = await readOptions(localSchedulerGroups, state.schedulerArgs ?? [], context)
  // The process has one set of metrics: the API server's features are in it.
  const warnings = [...featureGateWarnings(features, turnableFeatures), ...featureGateWarnings(schedulerFeatures)]
  for (const warning of new Set(warnings)) tools.log.warn(warning)
  const scheduling = createClient(server.transport({ name: 'system:kube-scheduler', groups: [authenticated] }, 'system:kube-scheduler'))
  const controlling = createClient(server.transport({ name: 'system:kube-controller-manager', groups: [authenticated] }, 'kube-controller-manager'))
  const clientFor = (serviceAccount: string) => {
    const name = `system:serviceaccount:kube-system:${serviceAccount}`
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', authenticated]
    return createClient(server.transport({ name, groups }, `kube-controller-manager/${serviceAccount}`))
  }
  return [
    createControllerManager({ ...tools, client: controlling, clientFor, log: tools.log.with('controllers') }, controllers, {
      ...told.options,
      ...volumes,
      featureGates: features,
      hostPaths,
      controllers: told.controllers,
      rootCa: told.options.rootCa ?? pki.ca.cert,
      clusterSigning: signing.signing ?? { durationMs: signing.durationMs, authorityOf: () => pki.ca },
      serviceAccountToken: secretTokens(told.serviceAccountKey ?? pki.serviceAccountKey),
    }),
    schedulerComponent(scheduling, { ...tools, log: tools.log.with('scheduler'), explainer }, schedulerConfigOf(scheduler.configuration, scheduler.plugins)),
  ]
}

interface NodesOptions {
  readonly tools: ProcessTools
  readonly state: ClusterState
  readonly paths: ClusterPaths
  readonly certificates: LivePki
  readonly ownKubelets: OwnKubelets
  readonly verbosity: number
  readonly processes: ProcessList
}

/** Simulated nodes run here; real ones have an agent process each, and need routes and ports on the host. */
export async function nodes(server: ApiServer, { tools, state, paths, certificates, ownKubelets, verbosity, processes }: NodesOptions): Promise<Component[]> {
  const { pki, onLook } = certificates
  const { clusterDns, clusterDomain, serviceCidr } = addressPlanOf(state)
  const simulated = await createSimulatedNodes({
    names: state.simulatedNodes,
    tools,
    ownKubelets,
    transportOf: (name) => server.transport({ name: `system:node:${name}`, groups: ['system:nodes', authenticated] }, 'kubelet'),
    clusterDns,
    clusterDomain,
    tainted: state.nodes.length > 0,
    serving: live(() => ({ cert: pki.apiserver.cert, key: pki.apiserver.key, clientCa: pki.ca.cert })),
    onServingRenewed: onLook,
  })
  if (!state.network) return simulated
  const routing = accessAs(server, { name: 'system:skiff:routes', groups: ['system:masters', authenticated] }, tools)
  const forwarding = accessAs(server, { name: 'system:skiff:local-ports', groups: ['system:masters', authenticated] }, tools)
  const { prefix } = state.network
  const isOnLink = (address: string) => address.startsWith(`${prefix}.`)
  const { namespace } = controlNetwork(state.network, state.id)
  const addedRanges = routing.informers.of(serviceCIDRs)
  const agents = { paths, state, ca: pki.ca, self: ownProgram(), verbosity, tools, processes }
  onLook(() => renewAgentCertificates(agents))
  return [
    ...simulated,
    ...createAgents(agents),
    createNodeRoutes(
      { ...tools, informers: routing.informers, log: tools.log.with('routes'), exec: createExec(inNetworkNamespace(namespace)) },
      { routesTo: (list) => controlRoutes(list, [serviceCidr, ...addedRanges.store.list().flatMap(({ spec }) => spec?.cidrs ?? [])], isOnLink) },
    ),
    { name: 'route informers', run: (signal) => routing.informers.run(signal) },
    createLocalPorts(
      {
        ...tools,
        ...forwarding,
        log: tools.log.with('localPorts'),
        events: createEventRecorder({ ...tools, client: forwarding.client }, { component: 'local-ports' }),
      },
      { isReal: isOnLink },
    ),
    { name: 'local port informers', run: (signal) => forwarding.informers.run(signal) },
  ]
}
