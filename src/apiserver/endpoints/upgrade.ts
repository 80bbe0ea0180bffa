/**
 * Requests that take their connection over (L3): the pipeline decides about them as about any other; then exec, attach, port-forward and
 * proxied WebSockets are tunnelled, watches and logs written in messages.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '#base/clock'
import type { ServerRequest } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { writeRawAnswer } from '../server/exchange.ts'
import { respondOverWebSocket, wantsWebSocket } from '../server/webSocket.ts'

/** @param beforeAnswers called before the connection is taken over, or anything is written to it */
export function upgradeHandler(
  handle: Handler,
  clock: Clock,
  beforeAnswers: () => void,
): (request: ServerRequest, socket: Duplex, head: Buffer) => Promise<void> {
  return async (request, socket, head) => {
    const answer = await handle(request)
    beforeAnswers()
    if (answer.type === 'tunnel') {
      const refusal = await answer.connect(socket, head, clock)
      if (refusal) await writeRawAnswer(socket, refusal, clock)
    } else if ((answer.type === 'watch' || answer.type === 'stream') && wantsWebSocket(request))
      await respondOverWebSocket(request, answer, socket, head, clock)
    else await writeRawAnswer(socket, answer, clock)
  }
}
