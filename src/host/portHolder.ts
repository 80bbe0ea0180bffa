/**
 * Finds the process that has a local port (L1), from /proc: the socket's inode in the kernel's tables, then the process with that descriptor. One
 * bounded search of all processes answers all questions of the next seconds: a host may have very many processes.
 */
import { createReadStream, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Clock } from '#base/clock'
import { namesIn } from './directoryNames.ts'
import { attempt, inTimeSlices, SharedTurns } from './timeSlices.ts'

export interface PortHolder {
  readonly pid: number
  /** The kernel's name of the program: up to 15 characters of its file's name. */
  readonly program: string
  /** Its command line. */
  readonly words: readonly string[]
}

/** The process that has a port of the loopback addresses; undefined when /proc does not tell, as for processes of other users, or beyond the bounds. */
export type FindPortHolder = (protocol: 'TCP' | 'UDP', port: number) => Promise<PortHolder | undefined>

/** A search ends after this many descriptors. */
const maxDescriptors = 200_000
/** The most bytes to read of a table, enough for 7,000 sockets. The kernel lists listening sockets first. */
const maxTableBytes = 2 ** 20
/** A search result is reused for this long. A process that takes a port meanwhile is found after that. */
export const lookKeptMs = 5000
const listening = '0A'

/** Pids by `PROTOCOL/PORT`. */
type Holders = ReadonlyMap<string, number>

export function createPortHolders(clock: Clock): FindPortHolder {
  let kept: { readonly untilMs: number; readonly holders: Promise<Holders> } | undefined
  return async (protocol, port) => {
    if (!kept || kept.untilMs <= clock.monotonicMs()) kept = { untilMs: clock.monotonicMs() + lookKeptMs, holders: look() }
    const pid = (await kept.holders).get(`${protocol}/${port}`)
    return pid === undefined ? undefined : describe(pid)
  }
}

async function look(): Promise<Holders> {
  const names = ['tcp', 'tcp6', 'udp', 'udp6']
  const texts = await Promise.all(names.map((name) => text(createReadStream(`/proc/net/${name}`, { end: maxTableBytes - 1 })).catch(() => '')))
  return inTimeSlices(ownersOf(texts), new SharedTurns())
}

/** @param tables those of tcp, tcp6, udp and udp6 */
function* ownersOf(tables: readonly string[]): Generator<undefined, Holders> {
  const ports = new Map<string, string>()
  for (const [index, table] of tables.entries()) {
    const isTcp = index < 2
    for (const socket of localSockets(table, isTcp)) {
      yield
      if (socket) ports.set(`socket:[${socket.inode}]`, `${isTcp ? 'TCP' : 'UDP'}/${socket.port}`)
    }
  }
  const holders = new Map<string, number>()
  let looked = 0
  for (const pid of namesIn('/proc')) {
    if (pid === undefined || !/^\d+$/.test(pid)) continue
    for (const descriptor of namesIn(`/proc/${pid}/fd`)) {
      yield
      if (++looked > maxDescriptors) return holders
      const target = descriptor === undefined ? undefined : attempt(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`))
      const port = target === undefined ? undefined : ports.get(target)
      if (port !== undefined && !holders.has(port)) holders.set(port, Number(pid))
    }
  }
  return holders
}

export interface LocalSocket {
  readonly port: number
  readonly inode: string
}

/**
 * The sockets in a table of the kernel that are bound to the loopback addresses or to all addresses; undefined for each other line.
 * @param table /proc/net/tcp or its like: a line each, whose second field is ADDRESS:PORT in hexadecimal, the fourth the state, the tenth the inode
 */
export function* localSockets(table: string, isTcp: boolean): Generator<LocalSocket | undefined> {
  for (let start = table.indexOf('\n') + 1, end = table.indexOf('\n', start); start > 0 && end >= 0; start = end + 1, end = table.indexOf('\n', start)) {
    const [, local = '', , state, , , , , , inode = '0'] = table.slice(start, end).trim().split(/\s+/)
    const [address = '', port = ''] = local.split(':')
    const counts = (!isTcp || state === listening) && isLocalAddress(address) && inode !== '0'
    yield counts ? { port: Number.parseInt(port, 16), inode } : undefined
  }
}

/** Words of 32 bits in the machine's order of bytes, which is little-endian wherever Node runs. */
function isLocalAddress(address: string): boolean {
  const last = address.slice(-8)
  const isIpv6 = address.length === 32
  const isUnspecified = /^0+$/.test(address)
  const isLoopback = isIpv6 ? /^0{24}01000000$/.test(address) : last.endsWith('7F')
  const isMapped = isIpv6 && /^0{16}FFFF0000/.test(address) && (last.endsWith('7F') || last === '00000000')
  return isUnspecified || isLoopback || isMapped
}

async function describe(pid: number): Promise<PortHolder> {
  const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
  const [program, command] = await Promise.all([read('comm'), read('cmdline')])
  return { pid, program: program.trim(), words: command.split('\0').slice(0, -1) }
}
