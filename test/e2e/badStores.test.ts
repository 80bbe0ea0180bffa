/** A store that cannot be used: the command says why and what to do, and leaves it as it found it. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../support/etcdServer.ts'
import { type Certificate, openSsl } from '../support/openssl.ts'
import { obstacleToApiServer, startApiServer } from './support/apiServerProcess.ts'

const bounded = { skip: obstacleToApiServer, timeout: 120_000 }
const ssl = openSsl()
after(() => ssl.remove())

/** What the server says when it ends instead of serving. */
function refusalOf(flags: readonly string[]): Promise<string> {
  return startApiServer(flags).then(
    async (server) => `it serves, and ended with ${await server.end('SIGTERM')}`,
    (error: Error) => error.message,
  )
}

describe('certificates of etcd', { skip: obstacleToApiServer || obstacleToEtcd() }, () => {
  let etcd: EtcdServer
  let authority: Certificate
  const files = (name: string, { cert, key }: Certificate) => [
    `--etcd-certfile=${ssl.file(`${name}.crt`, cert)}`,
    `--etcd-keyfile=${ssl.file(`${name}.key`, key)}`,
  ]
  before(async () => {
    authority = ssl.authority('etcd-ca')
    const serving = ssl.sign(authority, { subject: '/CN=etcd', usage: 'serverAuth', names: 'IP:127.0.0.1' })
    const client = ssl.sign(authority, { subject: '/CN=apiserver' })
    ssl.file('ca.crt', authority.cert)
    etcd = await startEtcd({
      tls: { ca: path.join(ssl.folder, 'ca.crt'), cert: ssl.file('etcd.crt', serving.cert), key: ssl.file('etcd.key', serving.key) },
      client: { ca: authority.cert, ...client },
    })
  })
  after(() => etcd?.stop())
  const refused = (...flags: string[]) => refusalOf([`--data-dir=${ssl.folder}/data`, `--etcd-servers=${etcd.url}`, ...flags])

  test('ETC-19 an etcd whose certificate another authority signed is named, with the reason', bounded, async () => {
    const client = ssl.sign(authority, { subject: '/CN=apiserver' })
    const other = ssl.file('other-ca.crt', ssl.authority('other').cert)
    const said = await refused(`--etcd-cafile=${other}`, ...files('client', client))
    assert.match(
      said,
      new RegExp(`etcd does not answer at ${etcd.url}: connection error: [a-z ]+; the authority that signed the certificate of etcd is not in --etcd-cafile`),
    )
  })

  test('ETC-19 an expired client certificate is named in the error', bounded, async () => {
    const expired = ssl.sign(authority, { subject: '/CN=apiserver', from: '20200101000000Z', to: '20200201000000Z' })
    const said = await refused(`--etcd-cafile=${ssl.folder}/ca.crt`, ...files('expired', expired))
    assert.match(said, /remote error: tls: [a-z ]+; the certificate in --etcd-certfile expired at 2020-02-01T00:00:00Z$/m)
  })

  test('ETC-19 the error names --etcd-certfile, the client certificate is of another authority', bounded, async () => {
    const stranger = ssl.sign(ssl.authority('strangers'), { subject: '/CN=apiserver' })
    const said = await refused(`--etcd-cafile=${ssl.folder}/ca.crt`, ...files('stranger', stranger))
    assert.match(said, /remote error: tls: [a-z ]+; etcd accepts no client certificate of this authority: look at --etcd-certfile$/m)
  })

  test('ETC-19 the error says that etcd asks for a client certificate, none is given', bounded, async () => {
    const said = await refused(`--etcd-cafile=${ssl.folder}/ca.crt`)
    assert.match(said, /remote error: tls: [a-z ]+; etcd asks for a client certificate: give one with --etcd-certfile and --etcd-keyfile$/m)
  })
})

describe('files of the embedded store', () => {
  let good = ''
  before(async () => {
    if (obstacleToApiServer) return
    good = path.join(ssl.folder, 'good')
    const server = await startApiServer([`--data-dir=${good}`])
    await server.end('SIGTERM')
  })
  const storeOf = (folder: string): string => {
    const found = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => path.basename(name) === 'data.mdb')
    return path.join(folder, found ?? assert.fail(`no store in ${folder}`))
  }
  const hashOf = (file: string, bytes: number) => createHash('sha256').update(fs.readFileSync(file).subarray(0, bytes)).digest('hex')

  const damages: readonly (readonly [how: string, damage: (file: string) => void, message: RegExp])[] = [
    [
      'random bytes',
      (file) => fs.writeFileSync(file, randomBytes(100_000)),
      /is no store of Skiff, or its beginning is damaged: put it back from a copy, or restore a snapshot/,
    ],
    ['cut behind its first pages', (file) => fs.truncateSync(file, 8192), /is damaged \(.*\): put it back from a copy, or restore a snapshot$/m],
    [
      'overwritten in its second page',
      (file) => {
        const descriptor = fs.openSync(file, 'r+')
        fs.writeSync(descriptor, randomBytes(4096), 0, 4096, 4096)
        fs.closeSync(descriptor)
      },
      /is damaged \(its second page has no mark of LMDB\): put it back from a copy, or restore a snapshot$/m,
    ],
    [
      'overwritten with zeros behind its first pages',
      (file) => {
        const descriptor = fs.openSync(file, 'r+')
        fs.writeSync(descriptor, Buffer.alloc(fs.statSync(file).size - 8192), 0, undefined, 8192)
        fs.closeSync(descriptor)
      },
      /is damaged \(.*\): put it back from a copy, or restore a snapshot$/m,
    ],
  ]
  for (const [how, damage, message] of damages)
    test(`ETC-10 a store that was ${how} is refused by its name, and stays as it is`, bounded, async () => {
      const folder = path.join(ssl.folder, `bad-${how.replaceAll(' ', '-')}`)
      fs.cpSync(good, folder, { recursive: true })
      const file = storeOf(folder)
      damage(file)
      const { size } = fs.statSync(file)
      const before = hashOf(file, size)
      const said = await refusalOf([`--data-dir=${folder}`])
      assert.match(said, message)
      assert.ok(said.includes(file), said)
      assert.equal(hashOf(file, size), before)
    })
})
