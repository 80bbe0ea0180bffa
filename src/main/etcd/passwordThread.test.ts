import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { passwordThread } from './passwordThread.ts'

test('ETC-24 a hash is one of bcrypt with the wanted cost, and matches its password alone', async () => {
  const passwords = passwordThread(4)
  const hash = await passwords.hash('sécret')
  assert.match(hash, /^\$2[ab]\$04\$.{53}$/)
  assert.deepEqual(await Promise.all(['sécret', 'secret', ''].map((password) => passwords.matches(password, hash))), [true, false, false])
  // A hash that etcd has written, with another cost.
  assert.equal(await passwords.matches('pw', '$2a$10$dW7rJxj1FBkCKJOziu2hjut684ONB0hck8fGv9NCX9dAN4cLCJJOu'), true)
  for (const damaged of ['', `$9${hash.slice(2)}`, hash.slice(1)]) assert.equal(await passwords.matches('sécret', damaged), false)
})

test('ETC-24 passwords are hashed while the main thread keeps running, and the 51st that waits is refused', async () => {
  const passwords = passwordThread(6)
  let turns = 0
  let isDone = false
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const outcomes = await Promise.allSettled(Array.from({ length: 51 }, () => passwords.hash('x')))
  isDone = true
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 50)
  const last = outcomes.at(-1)
  assert.ok(last?.status === 'rejected' && last.reason.message === 'etcdserver: too many requests')
  assert.ok(turns > 50, `${turns} turns of the event loop`)
})

test('ETC-24 the thread hashes a new password while as many logins wait as may', async () => {
  const passwords = passwordThread(4)
  const logins = Promise.allSettled(Array.from({ length: 51 }, () => passwords.matches('x', 'no hash')))
  assert.match(await passwords.hash('x'), /^\$2/)
  assert.equal((await logins).filter(({ status }) => status === 'rejected').length, 1)
})

test('ETC-24 the rest of a long password is not sent to the thread, and its beginning matches as with bcrypt', async (t) => {
  const sent = t.mock.method(Worker.prototype, 'postMessage')
  const passwords = passwordThread(4)
  const hash = await passwords.hash('x'.repeat(72))
  assert.equal(await passwords.matches('x'.repeat(1 << 20), hash), true)
  assert.equal(sent.mock.calls.at(-1)?.arguments[0].content.password.length, 72)
})
