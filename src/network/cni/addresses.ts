/**
 * The addresses that a node's pods have (L3): a file each, named after the address, which only one plugin process can create. Its lines name the container and the
 * interface. Upstream's counterpart: the reference plugin host-local, whose files have the same form.
 */
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { cidrSize, formatIp, networkAddress, parseCidr, parseIp } from '#api/machinery/ip'
import { listIfExists, makeDirectory } from '#host/files'

/** One end of a pod's link. */
export interface Attachment {
  readonly containerId: string
  readonly ifname: string
}

export interface PodAddress {
  readonly ip: string
  readonly gateway: string
}

/** @param state where the plugins keep what they know */
export const addressDirectory = (state: string) => `${state}/addresses`

const lastPrefix = 'last_reserved_ip.'
const textOf = ({ containerId, ifname }: Attachment) => `${containerId}\r\n${ifname}`

/** The next free address of the range after the one given out last. @throws Error when all are taken */
export async function takeAddress(directory: string, cidr: string, attachment: Attachment): Promise<PodAddress> {
  const block = parseCidr(cidr)
  if (!block) throw new Error(`${cidr} is not a range of addresses`)
  await makeDirectory(directory)
  const { family, value: network } = networkAddress(block)
  // The gateway is the first; the last of IPv4 is the broadcast address.
  const [first, size] = [network + 2n, cidrSize(block) - (family === 4 ? 3n : 2n)]
  if (size <= 0n) throw new Error(`${cidr} has no address for a pod`)
  const taken = new Set(await listIfExists(directory))
  const lastFile = path.join(directory, `${lastPrefix}${cidr.replace('/', '-')}`)
  const last = parseIp(await readFile(lastFile, 'utf8').catch(() => ''))
  const start = last && last.value >= first && last.value < first + size ? last.value - first + 1n : 0n
  for (let tried = 0n; tried <= BigInt(taken.size) && tried < size; tried++) {
    const ip = formatIp({ family, value: first + ((start + tried) % size) })
    if (!taken.has(ip) && (await create(path.join(directory, ip), textOf(attachment)))) {
      await writeFile(lastFile, ip)
      return { ip, gateway: formatIp({ family, value: network + 1n }) }
    }
    taken.add(ip)
  }
  throw new Error(`all addresses of ${cidr} are taken`)
}

/** False when another process was faster. */
async function create(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Releases the addresses of attachments for which `isGone` is true. */
export async function releaseAddresses(directory: string, isGone: (attachment: Attachment) => boolean): Promise<void> {
  for (const { ip, attachment } of await takenAddresses(directory)) if (isGone(attachment)) await rm(path.join(directory, ip), { force: true })
}

/** A file is empty for a moment before its plugin has written it: it is not one that has no container. */
export async function takenAddresses(directory: string): Promise<{ readonly ip: string; readonly attachment: Attachment }[]> {
  const taken = (await addressNames(directory)).map(async (ip) => {
    const [containerId = '', ifname = ''] = (await readFile(path.join(directory, ip), 'utf8').catch(() => '')).split('\r\n')
    return { ip, attachment: { containerId, ifname } }
  })
  return (await Promise.all(taken)).filter(({ attachment }) => attachment.containerId !== '')
}

const addressNames = async (directory: string) => (await listIfExists(directory)).filter((name) => parseIp(name) !== undefined)

/** Far longer than a plugin takes from the file to its content. */
const unfinishedMs = 10_000

/** Frees addresses whose files a crash or a power cut left empty: they name no container, so that no DEL would free them. */
export async function releaseUnfinished(directory: string, nowMs: number): Promise<void> {
  for (const ip of await addressNames(directory)) {
    const file = path.join(directory, ip)
    const { size, mtimeMs } = await stat(file)
    if (size === 0 && nowMs - mtimeMs > unfinishedMs) await rm(file)
  }
}
