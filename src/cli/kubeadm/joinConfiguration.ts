/** kubeadm's JoinConfiguration (L4, pure): how a machine joins a cluster. Upstream: kubeadm's apis/kubeadm/v1beta4 and v1beta3 (v1.36). */
import { CommandError } from '../exitCodes.ts'
import { readDocuments } from './documents.ts'
import type { FieldReport, Fields } from './fields.ts'
import { type ApiEndpoint, ignorePhases, readApiEndpoint } from './initConfiguration.ts'

export interface JoinSettings {
  readonly endpoint: string | undefined
  readonly token: string | undefined
  readonly hashes: readonly string[]
  readonly skipsVerification: boolean
  readonly nodeName: string | undefined
  readonly caFile: string | undefined
  /** Flags of the kubelet. */
  readonly kubeletFlags: readonly string[]
  /** Absent: it joins as a node. */
  readonly controlPlane: (ApiEndpoint & { readonly certificateKey: string | undefined }) | undefined
}

export function readJoinConfiguration(text: string, report: FieldReport): JoinSettings {
  const fields = readDocuments(text, ['JoinConfiguration'], report).get('JoinConfiguration')
  if (!fields) throw new CommandError('usage', 'it has no document of kind JoinConfiguration')
  fields.refused('dryRun', 'skiff join has no dry run: leave the field out to join')
  const settings = {
    ...discoveryOf(fields),
    ...registrationOf(fields.object('nodeRegistration'), report),
    caFile: fields.text('caCertPath'),
    controlPlane: controlPlaneOf(fields.object('controlPlane')),
  }
  ignorePhases(fields)
  fields.end()
  return settings
}

function discoveryOf(fields: Fields) {
  const discovery = fields.object('discovery')
  if (!discovery) throw new CommandError('usage', `${fields.at('discovery')}: it is missing`)
  discovery.refused('file', 'Skiff discovers a cluster by a token: discovery.bootstrapToken')
  discovery.ignored('timeout', 'left out: the times are fixed')
  const byToken = discovery.object('bootstrapToken')
  if (!byToken) throw new CommandError('usage', `${discovery.at('bootstrapToken')}: it is missing`)
  const token = byToken.text('token')
  const found = {
    endpoint: byToken.text('apiServerEndpoint'),
    hashes: byToken.texts('caCertHashes') ?? [],
    skipsVerification: byToken.flag('unsafeSkipCAVerification') ?? false,
  }
  byToken.end()
  const tlsToken = discovery.text('tlsBootstrapToken')
  // The values are secrets.
  if (tlsToken !== undefined && token !== undefined && tlsToken !== token)
    throw new CommandError('usage', `${discovery.at('tlsBootstrapToken')} and ${byToken.at('token')} differ: Skiff uses one token for both`)
  discovery.end()
  return { ...found, token: token ?? tlsToken }
}

function registrationOf(node: Fields | undefined, report: FieldReport) {
  if (!node) return { nodeName: undefined, kubeletFlags: [] }
  const nodeName = node.text('name')
  const socket = node.text('criSocket')
  const taints = node.objects('taints').map((taint) => taintOf(taint))
  const args = node.args('kubeletExtraArgs')
  for (const name of ['imagePullPolicy', 'imagePullSerial']) node.ignored(name, 'left out: no image is pulled to join')
  node.ignored('ignorePreflightErrors', 'left out: skiff doctor checks a host')
  node.end()
  if (args.some(({ name }) => name === 'hostname-override'))
    report.warnings.push(`${node.at('kubeletExtraArgs')}: hostname-override counts instead of ${node.at('name')}`)
  return {
    nodeName,
    kubeletFlags: [
      ...(socket === undefined ? [] : [`--container-runtime-endpoint=${socket.startsWith('/') ? `unix://${socket}` : socket}`]),
      ...(taints.length === 0 ? [] : [`--register-with-taints=${taints.join(',')}`]),
      ...args.map(({ name, value }) => `--${name}=${value}`),
    ],
  }
}

function taintOf(taint: Fields): string {
  const [key, value, effect] = [taint.text('key'), taint.text('value'), taint.text('effect')]
  taint.ignored('timeAdded', 'left out')
  taint.end()
  if (key === undefined || effect === undefined) throw new CommandError('usage', `${taint.at('key')} and ${taint.at('effect')}: both are needed`)
  return `${key}${value === undefined ? '' : `=${value}`}:${effect}`
}

function controlPlaneOf(controlPlane: Fields | undefined) {
  if (!controlPlane) return undefined
  const found = { ...readApiEndpoint(controlPlane), certificateKey: controlPlane.text('certificateKey') }
  controlPlane.end()
  return found
}
