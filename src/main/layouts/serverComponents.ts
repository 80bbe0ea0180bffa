/**
 * The other components of a local cluster's server process (L5): the scheduler, the controllers and simulated nodes where its layout has them, and the components
 * that keep the agents, routes and ports of real nodes. A module of its own, so that the API can be served before this code is read. Upstream has processes for them.
 */
import os from 'node:os'
import path from 'node:path'
import type { ApiServer } from '#apiserver/apiServer'
import type { UserInfo } from '#apiserver/core/request'
import type { Component } from '#base/component'
import { type FeatureGateSettings, featureGateWarnings } from '#base/featureGates'
import { serviceCIDRs } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { createEventRecorder } from '#client/eventRecorder'
import { createExec } from '#host/exec'
import { inNetworkNamespace } from '#host/netns'
import { createPortHolders } from '#host/portHolder'
import { createNodeRoutes } from '#network/nodeRoutes'
import { schedulerConfigOf } from '#scheduler/config/configuration'
import type { Explainer } from '#scheduler/explain/explainer'
import { createConfigFile } from '../apiserver/configFile.ts'
import { readOptions } from '../apiserver/options/readOptions.ts'
import { scheduledBackups } from '../backup/scheduledBackups.ts'
import type { ComponentWatch } from '../component/componentHealth.ts'
import type { Fence } from '../component/leading.ts'
import { leadingComponent } from '../component/leadingComponent.ts'
import { defaultLease } from '../component/options/leaderElection.ts'
import { localSchedulerGroups } from '../component/options/local.ts'
import type { PodResources } from '../component/podResourcesPage.ts'
import { schedulerComponent } from '../component/schedulerComponent.ts'
import { defragmentation } from '../etcd/defragmentation.ts'
import { addressPlanOf } from '../localCluster/addressPlan.ts'
import { clustersByApiPort } from '../localCluster/apiPorts.ts'
import type { ClusterPaths, ClusterState } from '../localCluster/clusterState.ts'
import { isReplicated, leaseIdentityOf, leasesByWork } from '../localCluster/controlPlanes.ts'
import type { LivePki } from '../pki/livePki.ts'
import { saveSnapshot } from '../snapshot/saveSnapshot.ts'
import { controlNetwork } from '../vnode/clusterNetwork.ts'
import { createAgents, createResolverWatch, renewAgentCertificates } from './agents.ts'
import { controlRoutes } from './controlRoutes.ts'
import { createCsiHostPathAddon } from './csiHostPath/csiHostPathAddon.ts'
import { csiHostPathUser } from './csiHostPath/csiHostPathOptions.ts'
import { createIngressAddon } from './ingress/ingressAddon.ts'
import { localPortKey } from './localPortPlan.ts'
import { createLocalPorts } from './localPorts.ts'
import type { OwnKubelets } from './ownKubelets.ts'
import { createPortForwarder } from './portForwarder.ts'
import type { ControllersParts, PartPlace, ProcessLayout } from './processes/layout.ts'
import { localLease } from './processes/localLease.ts'
import type { ProcessList } from './processList.ts'
import { ownProgram, type ProcessTools, runTogether } from './processTools.ts'
import { createPublishedPorts } from './publishedPorts.ts'

/** A component's way into the API: in process, under its own name. */
function accessAs(server: ApiServer, user: UserInfo, tools: ProcessTools, fence: Fence) {
  const client = fence(createClient(server.transport(user, user.name)))
  return { client, informers: createSharedInformerFactory(client, tools) }
}

const authenticated = 'system:authenticated'
interface ControlPlaneParts extends ControllersParts {
  readonly explainer: Explainer
  readonly podResources: PodResources
  readonly watches: ComponentWatches
  readonly layout: ProcessLayout
  readonly paths: ClusterPaths
  readonly verbosity: number
  readonly processes: ProcessList
}

function placeOf(server: ApiServer, { paths, name, verbosity, processes }: Pick<NodesOptions, 'paths' | 'name' | 'verbosity' | 'processes'>): PartPlace {
  const transportAs: PartPlace['transportAs'] = (user, userAgent) => server.transport(user, userAgent)
  return { transportAs, paths, name, verbosity, self: ownProgram(), processes }
}

/** The watches over the components whose health the API shows. */
export interface ComponentWatches {
  readonly scheduler: ComponentWatch
  readonly controllerManager: ComponentWatch
}

/** Controllers and scheduler, by the flags that the cluster was made with. @throws Error when one of them cannot be read. */
export async function controlPlane(server: ApiServer, parts: ControlPlaneParts): Promise<Component[]> {
  const { tools, state, name, watches, layout, explainer, podResources } = parts
  const context = { file: (name: string) => createConfigFile(name, tools.clock) }
  const { scheduler, lease, features } = await readOptions(localSchedulerGroups, state.schedulerArgs ?? [], context)
  // The process has one set of metrics: the API server's features are in it.
  for (const warning of new Set([...scheduler.warnings, ...featureGateWarnings(features)])) tools.log.warn(warning)
  const clientAs = (user: string, userAgent: string) => createClient(server.transport({ name: user, groups: [authenticated] }, userAgent))
  const scheduling = clientAs('system:kube-scheduler', 'system:kube-scheduler')
  const placeTools = { ...tools, log: tools.log.with('scheduler'), explainer, podResources }
  const placing = (fence: Fence) => schedulerComponent(fence(scheduling), placeTools, schedulerConfigOf(scheduler.configuration, scheduler.plugins))
  const onScheduler = {
    tools,
    identity: leaseIdentityOf(state, name, os.hostname()),
    name: leasesByWork.scheduler,
    client: clientAs('system:kube-scheduler', 'kube-scheduler/leader-election'),
    lease: localLease(state, lease, scheduler.configuration.leaderElection),
  }
  return [
    watches.controllerManager.watch(await layout.controllers(parts, placeOf(server, parts))),
    watches.scheduler.watch(leadingComponent(onScheduler, (fence, signal) => placing(fence).run(signal))),
  ]
}

const csiHostPathManager: UserInfo = { name: 'system:skiff:csi-hostpath-nodes', groups: ['system:masters', authenticated] }
/** The rights of the driver's own controllers are those of its ClusterRole. */
const csiHostPathControllers: UserInfo = { name: csiHostPathUser, groups: [authenticated] }
const ingressManager: UserInfo = { name: 'system:skiff:ingress', groups: ['system:masters', authenticated] }

export interface NodesOptions {
  readonly tools: ProcessTools
  readonly state: ClusterState
  readonly paths: ClusterPaths
  readonly certificates: LivePki
  readonly ownKubelets: OwnKubelets
  readonly verbosity: number
  readonly processes: ProcessList
  /** The API server's --feature-gates, which the kubelets of real nodes have too. */
  readonly featureGates: FeatureGateSettings
  /** This server's. */
  readonly name: string
  readonly layout: ProcessLayout
}

/** The nodes of the cluster, which one of its servers runs at a time. */
export function nodes(server: ApiServer, options: NodesOptions): Component {
  const { tools, state, name, ownKubelets } = options
  const client = createClient(server.transport({ name: 'system:skiff:nodes', groups: ['system:masters', authenticated] }, 'skiff-nodes/leader-election'))
  const lease = { ...defaultLease(leasesByWork.nodes), leaderElect: isReplicated(state) }
  const identity = leaseIdentityOf(state, name, os.hostname())
  return leadingComponent({ name: leasesByWork.nodes, client, tools, lease, identity }, async (fence, signal) => {
    const appliers: (() => Promise<void> | void)[] = []
    const components = await nodesNow(server, options, fence, (apply) => void appliers.push(apply))
    const forget = options.certificates.onLook(async () => {
      for (const apply of appliers) await apply()
    })
    try {
      await ownKubelets.publish()
      await runTogether(components, tools, signal)
    } finally {
      forget()
      ownKubelets.clear()
    }
  })
}

function backups(server: ApiServer, { tools, paths }: NodesOptions, fence: Fence): Component {
  const { client } = accessAs(server, { name: 'system:skiff:backups', groups: ['system:masters', authenticated] }, tools, fence)
  const events = createEventRecorder({ ...tools, client }, { component: 'backups' })
  return scheduledBackups({
    ...tools,
    paths,
    log: tools.log.with('backups'),
    save: (state, file) => saveSnapshot({ paths, state, tools }, file),
    onFailure: (reason) => events.event({ apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' }, 'Warning', 'BackupFailed', reason),
  })
}

/** Simulated nodes run where the layout has them; real ones have an agent process each, and need routes and ports on the host. */
async function nodesNow(server: ApiServer, options: NodesOptions, fence: Fence, onLook: (apply: () => Promise<void> | void) => void): Promise<Component[]> {
  const { tools, state, paths, certificates, ownKubelets, verbosity, processes, featureGates, layout } = options
  const { pki } = certificates
  const { serviceCidr } = addressPlanOf(state)
  const simulated = layout.simulatedNodes({ tools, state, paths, certificates, ownKubelets, fence, onLook }, placeOf(server, options))
  const agents = { paths, state, ca: pki.ca, self: ownProgram(), verbosity, tools, processes, featureGates, onLook }
  const clientOf = (user: UserInfo) => accessAs(server, user, tools, fence).client
  const csiHostPath = createCsiHostPathAddon({ ...agents, client: clientOf(csiHostPathManager), controllerClient: clientOf(csiHostPathControllers) })
  const ofHost = [simulated, ...(state.etcd ? [defragmentation(paths, tools)] : []), backups(server, options, fence), csiHostPath]
  if (!state.network) return ofHost
  const routing = accessAs(server, { name: 'system:skiff:routes', groups: ['system:masters', authenticated] }, tools, fence)
  const forwarding = accessAs(server, { name: 'system:skiff:local-ports', groups: ['system:masters', authenticated] }, tools, fence)
  const { prefix, prefixIpv6 } = state.network
  const isOnLink = (address: string) => address.startsWith(`${prefix}.`) || (prefixIpv6 !== undefined && address.startsWith(`${prefixIpv6}::`))
  const { namespace } = controlNetwork(state.network, state.id)
  const addedRanges = routing.informers.of(serviceCIDRs)
  onLook(() => renewAgentCertificates(agents))
  const { publish: published = [] } = state
  const forwarder = createPortForwarder({ namespace, cluster: state.name, self: ownProgram(), tools, processes })
  return [
    ...ofHost,
    ...createAgents(agents),
    createResolverWatch(agents),
    createNodeRoutes(
      { ...tools, informers: routing.informers, log: tools.log.with('routes'), exec: createExec(inNetworkNamespace(namespace)) },
      { routesTo: (list) => controlRoutes(list, [...serviceCidr.split(','), ...addedRanges.store.list().flatMap(({ spec }) => spec?.cidrs ?? [])], isOnLink) },
    ),
    { name: 'route informers', run: (signal) => routing.informers.run(signal) },
    createLocalPorts(
      {
        ...tools,
        ...forwarding,
        log: tools.log.with('localPorts'),
        events: createEventRecorder({ ...tools, client: forwarding.client }, { component: 'local-ports' }),
        forwarder,
        holderOf: createPortHolders(tools.clock),
        clustersByApiPort: () => clustersByApiPort(path.resolve(paths.dir, '../..')),
      },
      { cluster: state.name, isReal: isOnLink, published: new Set(published.map(localPortKey)) },
    ),
    createPublishedPorts({ ...tools, ...forwarding, log: tools.log.with('publishedPorts'), forwarder }, { ports: published, isReal: isOnLink }),
    forwarder.component,
    createIngressAddon({ ...agents, client: clientOf(ingressManager) }),
    { name: 'local port informers', run: (signal) => forwarding.informers.run(signal) },
  ]
}
