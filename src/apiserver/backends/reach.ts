/**
 * How connections to addresses of the cluster are made (L3): by this process, or by a dialer that is in the cluster's network, or not at all because
 * nothing has the address. HTTP agents and raw connections ask the same Reach, with the address that a name was resolved to.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { type AgentOptions, type ClientRequestArgs, Agent as HttpAgent } from 'node:http'
import type { Agent as HttpsAgent } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TrustingHttpsAgent } from '../core/serverTrust.ts'

/**
 * Connects to an IP address. An aborted signal ends the attempt.
 * @param user the name of the user who asks for the connection; absent: this server needs it itself
 * @throws UnreachableAddress when too many attempts are in flight
 */
export type Dialer = (address: string, port: number, signal?: AbortSignal, user?: string) => Promise<Socket>

export interface Reach {
  /** The dialer for an IP address; undefined: this process connects. @throws UnreachableAddress when the address leads nowhere */
  dialerFor(address: string): Dialer | undefined
}

/** An address that is not dialled, with the reason. */
export class UnreachableAddress extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnreachableAddress'
  }
}

export interface Way {
  readonly address: string
  readonly dialer: Dialer | undefined
  /** Gives the addresses that were found: a second look-up could find others. */
  readonly lookup: LookupFunction
}

/**
 * Resolves a host and selects the dialer for it. A name with addresses of both kinds leads to the cluster.
 * @throws Error of the look-up, or UnreachableAddress
 */
export async function wayTo(reach: Reach, host: string, lookup: LookupFunction = systemLookup): Promise<Way> {
  const found = isIP(host) === 0 ? await addressesOf(host, lookup) : [{ address: host, family: isIP(host) }]
  const answer: LookupFunction = (_name, options, done) => {
    if (options.all) done(null, [...found])
    else done(null, found[0]?.address ?? '', found[0]?.family)
  }
  for (const { address } of found) {
    const dialer = reach.dialerFor(address)
    if (dialer) return { address, dialer, lookup: answer }
  }
  return { address: found[0]?.address ?? host, dialer: undefined, lookup: answer }
}

function addressesOf(host: string, lookup: LookupFunction): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found, family) => {
      if (error) reject(error)
      else resolve(typeof found === 'string' ? [{ address: found, family: family ?? isIP(found) }] : found)
    })
  })
}

type Created = (error: Error | null, stream: Duplex) => void
type ConnectOptions = ClientRequestArgs & { lookup?: LookupFunction; socket?: Duplex; dialSignal?: AbortSignal; dialUser?: string }

/** Options of a request that ends when the signal aborts, and its dial with it: Node does not pass `signal` to the agent. */
export function endingWith(signal: AbortSignal, user?: string): Pick<ConnectOptions, 'dialSignal' | 'dialUser'> & { signal: AbortSignal } {
  return { signal, dialSignal: signal, ...(user === undefined ? {} : { dialUser: user }) }
}

/** Connects as the reach says, and lets `connect` do the rest over the socket or with the look-up. */
function createThrough(reach: Reach, options: ConnectOptions, created: Created, connect: (options: ConnectOptions) => Duplex | null | undefined): void {
  const make = async () => {
    const { address, dialer, lookup } = await wayTo(reach, options.host ?? 'localhost', options.lookup)
    const socket = await dialer?.(address, Number(options.port), options.dialSignal, options.dialUser)
    return connect(socket ? { ...options, socket } : { ...options, lookup })
  }
  make().then(
    (stream) => {
      if (stream) created(null, stream)
    },
    (error: Error) => created(error, undefined as unknown as Duplex),
  )
}

class ReachingHttpAgent extends HttpAgent {
  readonly #reach: Reach

  constructor(reach: Reach, options?: AgentOptions) {
    super(options)
    this.#reach = reach
  }

  override createConnection(options: ConnectOptions, created: Created): undefined {
    createThrough(this.#reach, options, created, (ready) => ready.socket ?? super.createConnection(ready))
    return undefined
  }
}

class ReachingHttpsAgent extends TrustingHttpsAgent {
  readonly #reach: Reach

  constructor(reach: Reach, options?: AgentOptions) {
    super(options)
    this.#reach = reach
  }

  override createConnection(options: ConnectOptions, created: Created): undefined {
    createThrough(this.#reach, options, created, (ready) => super.createConnection(ready))
    return undefined
  }
}

/** An agent for plain requests. Without a reach, Node's own. */
export function httpAgent(reach: Reach | undefined, options?: AgentOptions): HttpAgent {
  return reach ? new ReachingHttpAgent(reach, options) : new HttpAgent(options)
}

/** The same for requests over TLS, which trusts servers as Go does. */
export function httpsAgent(reach: Reach | undefined, options?: AgentOptions): HttpsAgent {
  return reach ? new ReachingHttpsAgent(reach, options) : new TrustingHttpsAgent(options)
}
