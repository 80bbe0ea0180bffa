import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnreachableAddress } from '#apiserver/backends/reach'
import { createDialCounter } from './dialCounter.ts'

const spellings = [
  { name: 'an IPv6 address', written: ['fd00::5', 'FD00:0::0005', 'fd00:0:0:0:0:0:0:5'] },
  { name: 'an IPv4 address that is also written as IPv6', written: ['10.244.1.5', '::ffff:10.244.1.5', '::ffff:af4:105'] },
]

for (const { name, written } of spellings)
  test(`API-29 all spellings of ${name} share one limit of dials`, () => {
    const [first = '', second = '', third = ''] = written
    const counter = createDialCounter({ ofServer: 10, perAddress: 2, perUser: 10 })
    counter.add(first)
    counter.add(second)
    assert.throws(() => counter.add(third), UnreachableAddress)
    counter.remove(third)
    counter.add(first)
  })

test('API-29 a dial beyond the limit of the server is refused until another one ends, and is not counted', () => {
  const counter = createDialCounter({ ofServer: 2, perAddress: 2, perUser: 10 })
  counter.add('10.244.1.5')
  counter.add('10.244.1.6')
  for (let i = 0; i < 5; i++) assert.throws(() => counter.add('10.244.1.7'), /^UnreachableAddress: 2 connections into the cluster/)
  counter.remove('10.244.1.5')
  counter.add('10.244.1.7')
})

test('API-29 dials of one user leave places to other users and to the server itself', () => {
  const counter = createDialCounter({ ofServer: 4, perAddress: 4, perUser: 2 })
  counter.add('10.244.1.5', 'jane')
  counter.add('10.244.1.6', 'jane')
  assert.throws(() => counter.add('10.244.1.7', 'jane'), /^UnreachableAddress: 2 connections of this user are being made already: try again later$/)
  counter.add('10.244.1.7', 'joe')
  counter.add('10.244.1.7')
  counter.remove('10.244.1.5', 'jane')
  counter.add('10.244.1.7', 'jane')
})
