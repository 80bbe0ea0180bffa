/**
 * A part of a local cluster as a process (L5): the controllers, or the simulated nodes. It reads the cluster's description and certificates as the server does,
 * and reaches the API over HTTPS as the administrator, who acts under the names of the components: requests have the rights of these alone.
 */
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { createHttpConnection } from '#client/httpConnection'
import { createHttpTransport } from '#client/httpTransport'
import { type ClusterPaths, type ClusterState, clusterPaths, readState } from '../../localCluster/clusterState.ts'
import { serversOf } from '../../localCluster/controlPlanes.ts'
import { loadSharedPki } from '../../localCluster/sharedPki.ts'
import { createLivePki, type LivePki, live } from '../../pki/livePki.ts'
import { createOwnKubelets, type OwnKubelets } from '../ownKubelets.ts'
import { type ProcessTools, processTools, runTogether } from '../processTools.ts'
import { controllersComponent } from './controllers.ts'
import type { TransportAs } from './layout.ts'
import type { MeterAnswer, PartRequest } from './partMessages.ts'
import { simulatedNodesComponent } from './simulated.ts'

interface Opened {
  readonly tools: ProcessTools
  readonly paths: ClusterPaths
  readonly state: ClusterState
  /** The server's. */
  readonly name: string
  readonly certificates: LivePki
  readonly transportAs: TransportAs
}

/** Runs the controllers until the signal aborts. Resolves with the exit code. */
export function runControllersPart(args: string[], signal: AbortSignal): Promise<number> {
  return runPart('controllers', args, signal, async (opened) => [await controllersComponent(opened.transportAs, { ...opened, pki: opened.certificates.pki })])
}

/** Runs the simulated nodes until the signal aborts. Resolves with the exit code. */
export function runSimulatedNodesPart(args: string[], signal: AbortSignal): Promise<number> {
  return runPart('nodes', args, signal, async (opened) => {
    const { tools, paths, certificates, transportAs } = opened
    const ownKubelets = createOwnKubelets({ file: paths.kubelets, clock: tools.clock })
    answerMeter(ownKubelets)
    return [simulatedNodesComponent(transportAs, { ...opened, ownKubelets, fence: (client) => client, onLook: (apply) => void certificates.onLook(apply) })]
  })
}

async function runPart(log: string, args: string[], signal: AbortSignal, create: (opened: Opened) => Promise<Component[]>): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { 'cluster-dir': { type: 'string', default: '' }, name: { type: 'string', default: 'server' }, v: { type: 'string', default: '2' } },
  })
  const tools = processTools(log, { verbosity: Number(values.v) })
  const directory = values['cluster-dir']
  const paths = clusterPaths(path.resolve(directory, '../..'), path.basename(directory))
  const state = await readState(paths)
  const own = state && serversOf(state).find(({ name }) => name === values.name)
  if (!state || !own) throw new Error(`${paths.state} describes no server "${values.name}"`)
  const load = async () => (await loadSharedPki(paths, state, tools.clock)).pki
  const certificates = createLivePki(await load(), load, tools)
  process.on('message', (request: PartRequest) => {
    if ('look' in request) certificates.look()
  })
  const connection = openConnection(own.port, certificates, tools)
  const components = await create({ tools, paths, state, name: own.name, certificates, transportAs: connection.transportAs })
  await runTogether([...components, certificates.component], tools, signal)
  await connection.close()
  return 0
}

/** One connection for all names: ten thousand nodes would have as many otherwise. */
function openConnection(port: number, { pki }: LivePki, { clock }: ProcessTools): { readonly transportAs: TransportAs; close(): Promise<void> } {
  const server = `https://127.0.0.1:${port}`
  const tls = live(() => ({ ca: pki.ca.cert, cert: pki.admin.cert, key: pki.admin.key }))
  const connection = createHttpConnection(new URL(server), tls, clock)
  return {
    transportAs: ({ name: user, groups = [] }, userAgent) => createHttpTransport({ server, connection, userAgent, clock, impersonate: { user, groups } }),
    close: () => connection.close(),
  }
}

/** Answers the server's questions about the usage of the nodes. */
function answerMeter(ownKubelets: OwnKubelets): void {
  const answer = (message: MeterAnswer) => {
    // A server that has just ended takes no answer.
    if (process.connected) process.send?.(message, undefined, {}, () => {})
  }
  process.on('message', (request: PartRequest) => {
    if ('look' in request) return
    const { id, node } = request
    const measure = async () => ownKubelets.measure(node)
    measure().then(
      (sample) => answer({ id, sample }),
      (error: unknown) => answer({ id, error: messageOf(error) }),
    )
  })
}
