/**
 * Skiff's own CNI plugins (L3), for nodes without the reference plugins: `skiff` links a pod to its node, maps host ports and limits bandwidth, `loopback` is what
 * every runtime asks for first. A process per command, which gets the command in its environment and the configuration on standard input.
 * Specification: CNI 1.1.0, and 0.3.0 to 1.0.0 for results.
 */
import { isIpv6 } from '#api/machinery/ip'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { check, type Exec } from '#host/exec'
import { type Attachment, addressDirectory, releaseAddresses, takeAddress, takenAddresses } from './addresses.ts'
import { type Bandwidth, bandwidthOf, checkBandwidth, limitBandwidth, removeBandwidth } from './bandwidth.ts'
import { addHostPorts, type PortMapping, removeHostPorts } from './hostPorts.ts'
import { alone, hostInterfaceOf, linkInPod, makeLink, removeLink } from './podLink.ts'

export interface CniDeps {
  readonly exec: Exec
  readonly clock: Clock
  /** CNI_COMMAND and so on. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where addresses and host ports are kept. */
  readonly directory: string
}

interface NetworkConfig {
  readonly cniVersion?: string
  readonly name?: string
  readonly type?: string
  readonly ranges?: readonly string[]
  readonly mtu?: number
  readonly runtimeConfig?: { readonly portMappings?: readonly object[]; readonly bandwidth?: object | null }
  readonly prevResult?: { readonly ips?: readonly { readonly address: string }[] }
  readonly 'cni.dev/valid-attachments'?: readonly { readonly containerID: string; readonly ifname: string }[] | null
}

export interface CniAnswer {
  /** Empty: the command has no result. */
  readonly output: string
  readonly code: 0 | 1
}

const supportedVersions = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']
const newest = '1.1.0'

/** Codes of the specification. */
const codes = { incompatibleVersion: 1, invalidEnvironment: 4, decodingFailure: 6, invalidConfig: 7, unavailable: 50, failed: 100 } as const

class CniError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

type Command = (deps: CniDeps, config: NetworkConfig) => Promise<object | undefined>

const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['ADD', add],
  ['DEL', del],
  ['CHECK', checkLink],
  ['GC', collect],
  ['STATUS', status],
])

/** @param input the configuration, as the runtime wrote it to standard input */
export async function runPlugin(deps: CniDeps, input: string): Promise<CniAnswer> {
  let cniVersion = newest
  try {
    const name = deps.env.CNI_COMMAND ?? ''
    if (name === 'VERSION') return { output: JSON.stringify({ cniVersion, supportedVersions }), code: 0 }
    const command = commands.get(name)
    if (!command) throw new CniError(codes.invalidEnvironment, `CNI_COMMAND is "${name}"`)
    const config = parseConfig(input)
    cniVersion = config.cniVersion ?? cniVersion
    const loopback = config.type === 'loopback'
    const result = await (loopback ? runLoopback(deps, config, name) : command(deps, config))
    return { output: result ? JSON.stringify({ cniVersion, ...result }) : '', code: 0 }
  } catch (error) {
    const code = error instanceof CniError ? error.code : codes.failed
    return { output: JSON.stringify({ cniVersion, code, msg: messageOf(error) }), code: 1 }
  }
}

function parseConfig(input: string): NetworkConfig {
  let config: NetworkConfig
  try {
    config = JSON.parse(input) as NetworkConfig
  } catch (error) {
    throw new CniError(codes.decodingFailure, `the configuration is not JSON: ${messageOf(error)}`)
  }
  const { cniVersion = '' } = config
  if (!supportedVersions.includes(cniVersion))
    throw new CniError(codes.incompatibleVersion, `version ${cniVersion} is not one of ${supportedVersions.join(', ')}`)
  return config
}

/** @throws CniError when the runtime names no attachment */
function attachmentOf({ env }: CniDeps): Attachment {
  const { CNI_CONTAINERID: containerId, CNI_IFNAME: ifname } = env
  // The container's name becomes that of a file, the interface's a word of a command.
  if (!containerId || !/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(containerId))
    throw new CniError(codes.invalidEnvironment, 'CNI_CONTAINERID is missing or not a name')
  if (!ifname || !/^[A-Za-z0-9_.-]{1,15}$/.test(ifname)) throw new CniError(codes.invalidEnvironment, 'CNI_IFNAME is missing or not a name')
  return { containerId, ifname }
}

function netnsOf({ env }: CniDeps): string {
  const { CNI_NETNS: netns } = env
  if (!netns || !/^\/\S+$/.test(netns)) throw new CniError(codes.invalidEnvironment, 'CNI_NETNS is missing or not a path')
  return netns
}

function rangesOf({ ranges = [] }: NetworkConfig): readonly string[] {
  if (ranges.length === 0) throw new CniError(codes.invalidConfig, 'ranges: the configuration names none')
  return ranges
}

const addressesIn = ({ directory }: CniDeps) => addressDirectory(directory)
const hostPortsIn = ({ exec, clock, directory }: CniDeps) => ({ exec, clock, directory: `${directory}/hostports` })
const isSame = (one: Attachment) => (other: Attachment) => one.containerId === other.containerId && one.ifname === other.ifname

async function add(deps: CniDeps, config: NetworkConfig): Promise<object> {
  const attachment = attachmentOf(deps)
  const netns = netnsOf(deps)
  const ranges = rangesOf(config)
  const bandwidth = requestedBandwidth(config)
  try {
    const addresses = []
    for (const range of ranges) addresses.push(await takeAddress(addressesIn(deps), range, attachment))
    await makeLink(deps.exec, { attachment, netns, addresses, mtu: config.mtu })
    const mappings = (config.runtimeConfig?.portMappings ?? []).map(portMappingOf)
    if (mappings.length > 0) await addHostPorts(hostPortsIn(deps), attachment.containerId, { ips: addresses.map(({ ip }) => ip), mappings })
    const device = await limitBandwidth(deps.exec, { attachment, bandwidth, mtu: config.mtu })
    const link = await linkInPod(deps.exec, { attachment, netns })
    const isOld = (config.cniVersion ?? newest) < '1.0.0'
    return {
      interfaces: [
        { name: hostInterfaceOf(attachment) },
        { name: attachment.ifname, mac: link?.mac, sandbox: netns },
        ...(device === undefined ? [] : [{ name: device }]),
      ],
      ips: addresses.map(({ ip, gateway }) => ({
        ...(isOld ? { version: isIpv6(ip) ? '6' : '4' } : {}),
        address: alone(ip),
        gateway,
        interface: 1,
      })),
      routes: addresses.map(({ ip, gateway }) => ({ dst: isIpv6(ip) ? '::/0' : '0.0.0.0/0', gw: gateway })),
      dns: {},
    }
  } catch (error) {
    await del(deps)
    throw error
  }
}

function requestedBandwidth({ runtimeConfig }: NetworkConfig): Bandwidth {
  try {
    return bandwidthOf(runtimeConfig?.bandwidth ?? {})
  } catch (error) {
    throw new CniError(codes.invalidConfig, messageOf(error))
  }
}

/** containerd writes the names of the fields with a capital letter, others without, and plugins in Go read both. */
function portMappingOf(given: object): PortMapping {
  const fields = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]))
  const [hostPort, containerPort] = [Number(fields.get('hostport')), Number(fields.get('containerport'))]
  if (!Number.isInteger(hostPort) || !Number.isInteger(containerPort)) throw new CniError(codes.invalidConfig, 'portMappings: a port is missing')
  return { hostPort, containerPort, protocol: String(fields.get('protocol') || 'tcp'), hostIP: String(fields.get('hostip') ?? '') }
}

/** Idempotent; also removes a partly made attachment. */
async function del(deps: CniDeps): Promise<undefined> {
  const attachment = attachmentOf(deps)
  await Promise.all([removeLink(deps.exec, attachment), removeBandwidth(deps.exec, attachment)])
  await removeHostPorts(hostPortsIn(deps), attachment.containerId)
  await releaseAddresses(addressesIn(deps), isSame(attachment))
  return undefined
}

/** The pod has the addresses and limits that it was given. */
async function checkLink(deps: CniDeps, config: NetworkConfig): Promise<undefined> {
  const { prevResult } = config
  const attachment = attachmentOf(deps)
  const link = await linkInPod(deps.exec, { attachment, netns: netnsOf(deps) })
  if (!link) throw new Error(`the pod has no interface ${attachment.ifname}`)
  const given = prevResult?.ips?.map(({ address }) => address.split('/')[0] ?? '') ?? []
  const missing = given.filter((ip) => !link.ips.includes(ip))
  if (missing.length > 0) throw new Error(`interface ${attachment.ifname} of the pod lacks the address ${missing.join(', ')}`)
  await checkBandwidth(deps.exec, attachment, requestedBandwidth(config))
  return undefined
}

/** Removes what attachments left that the runtime does not know any more. */
async function collect(deps: CniDeps, config: NetworkConfig): Promise<undefined> {
  const named = config['cni.dev/valid-attachments']
  if (!named) throw new CniError(codes.invalidConfig, 'cni.dev/valid-attachments: the configuration has no list')
  const valid = named.map(({ containerID, ifname }) => isSame({ containerId: containerID, ifname }))
  const gone = (await takenAddresses(addressesIn(deps))).map(({ attachment }) => attachment).filter((one) => !valid.some((is) => is(one)))
  for (const attachment of gone) {
    await Promise.all([removeLink(deps.exec, attachment), removeBandwidth(deps.exec, attachment)])
    await removeHostPorts(hostPortsIn(deps), attachment.containerId)
  }
  await releaseAddresses(addressesIn(deps), (one) => gone.some(isSame(one)))
  return undefined
}

/** Whether pods can be added now. */
async function status({ exec }: CniDeps, config: NetworkConfig): Promise<undefined> {
  rangesOf(config)
  for (const program of ['ip', 'nsenter', 'nft']) {
    const { code } = await exec.run(program, [program === 'ip' ? '-V' : '--version'])
    if (code === -1) throw new CniError(codes.unavailable, `${program} is not installed`)
  }
  return undefined
}

async function runLoopback(deps: CniDeps, { cniVersion = newest }: NetworkConfig, command: string): Promise<object | undefined> {
  if (command !== 'ADD') return undefined
  const netns = netnsOf(deps)
  await check(deps.exec, 'nsenter', [`--net=${netns}`, '--', 'ip', 'link', 'set', 'lo', 'up'])
  const version = cniVersion < '1.0.0' ? { version: '4' } : {}
  return { interfaces: [{ name: 'lo', sandbox: netns }], ips: [{ ...version, address: '127.0.0.1/8', interface: 0 }], dns: {} }
}
