/** ETC: the store's suite over a real etcd, one fresh member for each test. */
import { after } from 'node:test'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import { realClock } from '#testing/realClock'
import { describeStore } from '#testing/storeConformance'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'

const servers: EtcdServer[] = []
after(() => Promise.all(servers.map((server) => server.stop())))

describeStore({
  name: 'etcd',
  isRemote: true,
  skip: obstacleToEtcd(),
  open: async () => {
    const server = await startEtcd()
    servers.push(server)
    return openEtcdStore({ endpoints: [server.url], clock: realClock, random: seededRandom(1) })
  },
  advance: (_, ms) => realClock.sleep(ms),
})
