// Package testcloud puts the clouds that serve Claude in front of a model, for tests: Amazon Bedrock with its paths, its
// signatures and its binary event streams, Google Vertex AI and Microsoft Foundry. The model behind them is any http.Handler
// of the Messages API, such as a stand-in whose faults then come out in the shapes of the cloud.
//
// It never asks a network, and no code but tests imports it.
package testcloud
