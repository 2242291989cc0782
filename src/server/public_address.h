// Which network addresses a server may dial on behalf of strangers: those of the public Internet.
// Everything that could be this machine, its network, or a way around both is not one.
#pragma once

#include <boost/asio/ip/address.hpp>

namespace sluice {

// False for loopback, private, link-local, shared (CGNAT), multicast, reserved, documentation and
// benchmark networks, and for IPv6 addresses that stand for an IPv4 one (mapped, translated, 6to4,
// Teredo): whoever means that address can say so.
bool is_public_address(const boost::asio::ip::address& address);

}  // namespace sluice
