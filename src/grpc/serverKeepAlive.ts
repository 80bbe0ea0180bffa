/**
 * What a gRPC server does about the connections of its clients (L1): silent clients are pinged and given up, and those that ping too often are sent away.
 * Upstream: grpc-go keepalive.ServerParameters and EnforcementPolicy, internal/transport/http2_server.go (keepalive, handlePing).
 */
import { constants, type ServerHttp2Session } from 'node:http2'
import { pingPeer } from './pings.ts'

export interface ServerKeepAlive {
  /** A client that has sent nothing for this long is pinged; 0: never. */
  readonly intervalMs: number
  /** A client that does not answer a ping within this time is given up; 0: clients are not pinged. */
  readonly timeoutMs: number
  /** The shortest time between two pings of a client that has calls under way. */
  readonly minTimeMs: number
}

/** gRPC's defaults. */
export const defaultKeepAlive: ServerKeepAlive = { intervalMs: 7_200_000, timeoutMs: 20_000, minTimeMs: 300_000 }

/** Clients that read this at the end of their connection double the pause between pings. */
export const tooManyPings = 'too_many_pings'

/** Pings that come too early, until the connection is ended. Upstream: maxPingStrikes. */
const mostStrikes = 2
/** The shortest time between two pings without calls. Upstream: defaultPingTimeout. */
const minIdleTimeMs = 7_200_000
/** Time for the client to read why its connection ends, as upstream. */
const farewellMs = 1_000

/** @returns a function to call whenever something is sent to the client: the next ping may come at any time then */
export function keepConnection(session: ServerHttp2Session, { intervalMs, timeoutMs, minTimeMs }: ServerKeepAlive): () => void {
  const bytesRead = () => (session.destroyed ? 0 : (session.socket?.bytesRead ?? 0))
  if (intervalMs > 0 && timeoutMs > 0) {
    let before = bytesRead()
    const isSilent = () => {
      const [last, now] = [before, bytesRead()]
      before = now
      return last === now
    }
    pingPeer(session, { pauseMs: intervalMs, timeoutMs }, isSilent, bytesRead)
  }
  let calls = 0
  session.on('stream', (stream) => {
    calls++
    stream.once('close', () => calls--)
  })
  let [strikes, lastMs, hasSent] = [0, Number.NEGATIVE_INFINITY, false]
  session.on('ping', () => {
    const [sinceMs, wasSent] = [performance.now() - lastMs, hasSent]
    lastMs = performance.now()
    hasSent = false
    if (wasSent) strikes = 0
    else if (sinceMs < (calls > 0 ? minTimeMs : minIdleTimeMs) && ++strikes > mostStrikes) sendAway(session)
  })
  return () => {
    hasSent = true
  }
}

function sendAway(session: ServerHttp2Session): void {
  if (session.destroyed) return
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, session.state.lastProcStreamID ?? 0, Buffer.from(tooManyPings))
  const timer = setTimeout(() => session.destroy(), farewellMs)
  session.once('close', () => clearTimeout(timer))
}
