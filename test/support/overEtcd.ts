/** Loaded before tests, runs their API servers over one real etcd, each below a prefix of its own: node --import ./test/support/overEtcd.ts --test FILE. */
import { after } from 'node:test'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import { defaultStore } from '#testing/defaultStore'
import { realClock } from '#testing/realClock'
import { type EtcdServer, startEtcd } from './etcdServer.ts'

let server: Promise<EtcdServer> | undefined
let opened = 0

defaultStore.open = async () => {
  server ??= startEtcd()
  const { url } = await server
  return openEtcdStore({ endpoints: [url], prefix: `/test${++opened}`, clock: realClock, random: seededRandom(opened) })
}
defaultStore.mediaType = 'application/vnd.kubernetes.protobuf'
after(async () => (await server)?.stop())
