package payment

// dollar is a token of six decimals that takes EIP-3009 authorizations.
func dollar(chain ChainID, address, symbol, name, version string) Asset {
	return Asset{Chain: chain, Address: mustAddress(address), Symbol: symbol, Decimals: 6, Name: name, Version: version}
}

// permitOnly is a token that moves by Permit2 or EIP-2612, not by EIP-3009.
func permitOnly(chain ChainID, address, symbol, name string, decimals uint8) Asset {
	return Asset{Chain: chain, Address: mustAddress(address), Symbol: symbol, Decimals: decimals, Name: name, Version: "1", NoAuthorization: true}
}

// tip20 is a Tempo dollar: six decimals, moved by transactions of its own.
func tip20(chain ChainID, address, symbol string) Asset {
	return Asset{Chain: chain, Address: mustAddress(address), Symbol: symbol, Decimals: 6, NoAuthorization: true}
}

func mustAddress(s string) Address {
	a, err := ParseAddressLoose(s)
	if err != nil {
		panic(err)
	}
	return a
}

// pinned is checked in asset_test.go against the domain separators that are
// known from the chains.
var pinned = []Asset{
	dollar("eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USDC", "USD Coin", "2"),
	dollar("eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "USDC", "2"),
	dollar("eip155:1", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USDC", "USD Coin", "2"),
	dollar("eip155:43114", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USDC", "USD Coin", "2"),
	dollar("eip155:137", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USDC", "USD Coin", "2"),
	dollar("eip155:42161", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USDC", "USD Coin", "2"),
	dollar("eip155:421614", "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "USDC", "USD Coin", "2"),
	dollar("eip155:143", "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "USDC", "USDC", "2"),
	dollar("eip155:988", "0x779Ded0c9e1022225f8E0630b35a9b54bE713736", "USDT0", "USDT0", "1"),
	dollar("eip155:2201", "0x78Cf24370174180738C5B8E352B6D14c83a6c9A9", "USDT0", "USDT0", "1"),
	dollar("eip155:14", "0xe7cd86e13AC4309349F30B3435a9d337750fC82D", "USDT0", "USD\u20ae0", "1"),
	dollar("eip155:50", "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1", "USDC", "USDC", "2"),
	dollar("eip155:51", "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4", "USDC", "USDC", "2"),
	dollar("eip155:42220", "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", "USDC", "USDC", "2"),
	dollar("eip155:42220", "0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e", "USDT", "Tether USD", "1"),
	dollar("eip155:42220", "0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771", "USAT", "Tether America USD", "1"),
	dollar("eip155:11142220", "0x01C5C0122039549AD1493B8220cABEdD739BC44E", "USDC", "USDC", "2"),
	dollar("eip155:1329", "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", "USDC", "USDC", "2"),
	dollar("eip155:1328", "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", "USDC", "USDC", "2"),
	dollar("eip155:36900", "0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2", "USDC.e", "USDC.e", "2"),
	dollar("eip155:190415", "0x401eCb1D350407f13ba348573E5630B83638E30D", "USDC.e", "Bridged USDC", "2"),
	dollar("eip155:181228", "0x401eCb1D350407f13ba348573E5630B83638E30D", "USDC.e", "Bridged USDC", "2"),

	permitOnly("eip155:4326", "0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7", "MegaUSD", "MegaUSD", 18),
	permitOnly("eip155:31612", "0xdD468A1DDc392dcdbEf6db6e34E89AA338F9F186", "mUSD", "Mezo USD", 18),
	permitOnly("eip155:31611", "0x118917a40FAF1CD7a13dB0Ef56C86De7973Ac503", "mUSD", "Mezo USD", 18),
	permitOnly("eip155:723487", "0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb", "SBC", "Stable Coin", 6),
	permitOnly("eip155:72344", "0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb", "SBC", "Stable Coin", 6),
	permitOnly("eip155:38833", "0xA5b8BF902b2844dA17d4506cc827F7f1681735E7", "USDC", "USDC", 6),

	tip20(Tempo, "0x20c0000000000000000000000000000000000000", "pathUSD"),
	tip20(Tempo, "0x20C000000000000000000000b9537d11c60E8b50", "USDC.e"),
	tip20(TempoTest, "0x20c0000000000000000000000000000000000000", "pathUSD"),
	tip20(TempoTest, "0x20c0000000000000000000000000000000000001", "alphaUSD"),
}
