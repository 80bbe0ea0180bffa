/**
 * A connection to a server through a proxy (L2): HTTP CONNECT over http or https, or SOCKS5. Names are resolved by the proxy.
 * Upstream: net/http's proxies and golang.org/x/net/proxy, as a kubeconfig's proxy-url uses them.
 */
import http from 'node:http'
import https from 'node:https'
import net, { type Socket } from 'node:net'

/** @throws Error when the proxy cannot be reached or refuses. */
export function openTunnel(proxy: URL, host: string, port: number): Promise<Socket> {
  if (proxy.protocol === 'socks5:' || proxy.protocol === 'socks5h:') return throughSocks(proxy, host, port)
  if (proxy.protocol === 'http:' || proxy.protocol === 'https:') return throughHttp(proxy, host, port)
  return Promise.reject(new Error(`the proxy's scheme ${proxy.protocol} is none of http, https, socks5`))
}

const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '')

function throughHttp(proxy: URL, host: string, port: number): Promise<Socket> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return new Promise((resolve, reject) => {
    const request = (proxy.protocol === 'https:' ? https : http).request({
      host: hostOf(proxy),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: { host: target, ...(proxy.username ? { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` } : {}) },
    })
    request.once('error', reject)
    request.once('response', (answer) => {
      reject(new Error(`the proxy answered ${answer.statusCode}`))
      request.destroy()
    })
    request.once('connect', (answer, socket, head) => {
      if (answer.statusCode !== 200) {
        socket.destroy()
        reject(new Error(`the proxy answered ${answer.statusCode}`))
        return
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket as Socket)
    })
    request.end()
  })
}

/** RFC 1928, with a login of RFC 1929 when the URL has one. */
async function throughSocks(proxy: URL, host: string, port: number): Promise<Socket> {
  const socket = net.connect({ host: hostOf(proxy), port: Number(proxy.port || 1080) })
  const read = reader(socket)
  try {
    socket.write(Buffer.from(proxy.username ? [5, 2, 0, 2] : [5, 1, 0]))
    const method = (await read(2))[1]
    if (method === 2) {
      const [user, password] = [proxy.username, proxy.password].map((text) => Buffer.from(decodeURIComponent(text)))
      socket.write(
        Buffer.concat([Buffer.from([1, user?.length ?? 0]), user ?? Buffer.alloc(0), Buffer.from([password?.length ?? 0]), password ?? Buffer.alloc(0)]),
      )
      if ((await read(2))[1] !== 0) throw new Error('the proxy refused the login')
    } else if (method !== 0) throw new Error('the proxy accepts no login that we have')
    const name = Buffer.from(host)
    socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]))
    const answer = await read(4)
    if (answer[1] !== 0) throw new Error(`the proxy could not connect (${answer[1]})`)
    // The address that it connected from: of no use, but in the way.
    await read((answer[3] === 1 ? 4 : answer[3] === 4 ? 16 : ((await read(1))[0] ?? 0)) + 2)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Reads exactly the requested number of bytes; later bytes stay in the socket. */
function reader(socket: Socket): (count: number) => Promise<Buffer> {
  return (count) =>
    new Promise((resolve, reject) => {
      const done = (act: () => void) => {
        socket.off('readable', take)
        socket.off('error', failed)
        socket.off('end', ended)
        act()
      }
      const take = () => {
        const bytes = socket.read(count) as Buffer | null
        if (bytes) done(() => resolve(bytes))
      }
      const failed = (error: Error) => done(() => reject(error))
      const ended = () => done(() => reject(new Error('the proxy closed the connection')))
      socket.on('readable', take)
      socket.on('error', failed)
      socket.on('end', ended)
      take()
    })
}
