/** `skiff calls`: what the kubelet asked of the container runtime and of CSI drivers for a pod or a claim, and the runtime of CNI plugins (L4). */
import type { NodeCall, NodeCalls } from '#api/debug/nodeCalls'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { skiffWhy } from '#why/answer'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { createReader, namedObject, paths, type Reader, required, viewOf } from '../net/reader.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, withConnection, withConnectionFlags } from '../past/connection.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly output?: string
}

interface Found {
  readonly nodes: readonly { readonly node: string; readonly calls?: readonly NodeCall[] | undefined; readonly notShown?: string | undefined }[]
}

export const calls: CliCommand = {
  name: 'calls',
  register: (program, context) => {
    const command = program
      .command('calls <object>')
      .description(
        'show the calls to the container runtime, to CSI drivers and to CNI plugins for a pod or a claim (pod/NAME, pvc/NAME), with their arguments and answers',
      )
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
    withConnectionFlags(command, 'a kubeconfig whose cluster and user are taken instead of a local cluster and its administrator')
      .option('-o, --output <format>', 'json, yaml')
      .action((object: string, flags: Flags) => show(context, object, flags))
  },
}

async function show(context: CommandContext, object: string, flags: Flags): Promise<void> {
  const { output = 'text' } = flags
  const format = (['json', 'yaml', 'text'] as const).find((one) => one === output)
  if (format === undefined) throw new CommandError('usage', `-o ${output}: expected json or yaml`)
  await withConnection(context, flags, async ({ transport, namespace }) => {
    printFound(context, format, await findCalls(createReader(transport), object, flags.namespace ?? namespace), describeCalls)
  })
}

const claimKinds = /^(?:pvc|persistentvolumeclaims?)\//

export function findCalls(reader: Reader, object: string, namespace: string): Promise<Found> {
  if (claimKinds.test(object)) return callsOfClaim(reader, namedObject(object, claimKinds, namespace))
  return callsOfPod(reader, namedObject(object, /^(?:po|pods?)\//, namespace))
}

async function callsOfPod(reader: Reader, { namespace, name }: ReturnType<typeof namedObject>): Promise<Found> {
  const pod = required(await reader.get<Pod>(paths.pod(namespace, name)), `pod ${namespace}/${name}`)
  const { nodeName } = pod.spec
  return { nodes: nodeName ? [await callsOf(reader, nodeName, { pod: `${namespace}/${name}` })] : [] }
}

/** Any node may have had the volume. */
async function callsOfClaim(reader: Reader, { namespace, name }: ReturnType<typeof namedObject>): Promise<Found> {
  const claim = required(await reader.get<PersistentVolumeClaim>(paths.claim(namespace, name)), `claim ${namespace}/${name}`)
  const { volumeName } = claim.spec
  if (!volumeName) throw new CommandError('notFound', `claim ${namespace}/${name} has no volume`, { hint: `${skiffWhy('pvc', name, namespace)} says why` })
  const volume = required(await reader.get<PersistentVolume>(paths.volume(volumeName)), `volume ${volumeName}`)
  const handle = volume.spec.csi?.volumeHandle
  if (handle === undefined) throw new CommandError('notFound', `volume ${volumeName} has no CSI driver, which could be called`)
  const nodes = required(await reader.list<KubeObject>(paths.nodes), 'list of nodes')
  const found = await Promise.all(nodes.map(({ metadata }) => callsOf(reader, metadata.name ?? '', { volume: handle })))
  return { nodes: found.filter(({ calls: made, notShown }) => notShown !== undefined || (made?.length ?? 0) > 0) }
}

async function callsOf(reader: Reader, node: string, query: Readonly<Record<string, string>>): Promise<Found['nodes'][number]> {
  const { found, notShown } = await viewOf<NodeCalls>(reader, 'nodecalls', node, query)
  return { node, calls: found?.calls, notShown: notShown ?? found?.note }
}

export function describeCalls({ nodes }: Found): string {
  if (nodes.length === 0) return 'no calls: no node has worked on it\n'
  return nodes
    .map(({ node, calls: made = [], notShown }) => {
      if (notShown !== undefined) return `${node}: not shown: ${notShown}\n`
      return `${node}: ${made.length} calls\n${made.map(callText).join('')}`
    })
    .join('')
}

function callText({ api, method, time, milliseconds, code, pod, request, answer }: NodeCall): string {
  const outcome = code === undefined ? 'no answer yet' : `${code} after ${milliseconds} ms`
  const lines = [`    request ${request}`, ...(answer === undefined || answer === '{}' ? [] : [`    answer  ${answer}`])]
  return `  ${time} ${api} ${method}: ${outcome}${pod === undefined ? '' : `, for pod ${pod}`}\n${lines.map((line) => `${line}\n`).join('')}`
}
